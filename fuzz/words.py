"""Dictionaries: what random bytes would not spell."""

from __future__ import annotations


def _each(words: str) -> tuple[str, ...]:
    return tuple(words.split())


JSON = (
    *_each('" { } [ ] : , null true NaN -Infinity 1e400 -0.0 \\ud800 \\u0000 \\n'),
    *("\n", "[[[[[[[[", '{"a":', "9" * 30, "1" * 4301),
)
BALLOT = (
    *_each('"candidates" "voters" "hypotheses" "text" "logprob" "prob" "tokens" "state" "weight" "id"'),
    *_each('"sampled" "finished" "ranked_by" "source" "references"'),
)
NUMBERS = _each("-1 0 inf -inf nan 1e308 -1e308 1_0 9223372036854775808 -0.0 1e-320")
MOSES = (" ||| ", "F0= ", "WordScores= ", "0-0 ")
FAIRSEQ = ("S-0\t", "T-0\t", "H-0\t", "D-0\t", "P-0\t")
SOCKEYE = _each('"translations" "scores" "translation" "score" "sentence_id"')
VLLM = _each('"outputs" "text" "token_ids" "cumulative_logprob" "finish_reason"')
OPENAI = (
    *_each('"choices" "message" "content" "logprobs" "token_logprobs" "finish_reason" "tool_calls"'),
    *_each('"response" "body" "status_code" "custom_id" "error" "refusal" "index" "usage" "logprob"'),
)
PIPELINE = _each('"generated_text" "translation_text" "content"')
PACKED = ("\x1f\x8b\x08", "(\xb5/\xfd", "BZh", "\ufeff")
INPUTS = _each('"text" "prompt" "messages" "custom_id" "body" "role" "references" "reference"')
ARPA = (*_each(r"\data\ \1-grams: \2-grams: \3-grams: \end\ <s> </s> <unk>"), "ngram 1=", "ngram 2=")
CORPUS = ("<s>", "</s>", "<unk>", "<UNK>", "\n")
VOCABULARY = _each('"kind" "words" "bpe" "tokenizer" "model" "vocab" "merges"')
CARD = _each('"options" "kind" "format" "vocabulary" "training" "show_and_tell" "transformer" 1e9')
TENSORS = _each('"dtype" "F32" "shape" "data_offsets" "__metadata__" "rangevote"')
OUTPUTS = _each('"winner" "text" "references" "source" "id" "error" "signature"')
PAIRS = _each('"outputs" "tgt" "src" "data" "item_id" "check" "image" "tie"')
TOML = (
    *_each("[election] similarity preset weights temperature rule winners = [[ ]] ''' 0x inf nan"),
    *("\n", '"""', " = [", "1" * 4301),
)
SERVICE = (
    *_each("[profiles.a] [limits] [options] [aliases.b] samples adaptive file model profile"),
    *_each("allow_models keep_elections upstream forward"),
)
HTTP = (
    *("POST ", "GET ", "\n\n", "content-type: application/json", "content-length: ", "host: ", "origin: "),
    *("authorization: Bearer ", "sec-fetch-site: ", "accept: text/html", "%2e%2e", "%00", "%ff"),
)
ASKED = (
    *_each('"model" "messages" "role" "user" "content" "prompt" "rangevote" "samples" "adaptive"'),
    *_each('"similarity" "n" "stream" "seed" "stop" "temperature" "candidates" "beam:4" "tiny" "elected"'),
    *_each('"logit_bias" "min_votes" "explain" "weights" "tools" "voters" "overlap_1-9" "tokenize"'),
)
ADDRESSES = ("/v1/chat/completions", "/v1/careful/completions", "/v1/models", "/elections/", "/static/")
ANSWER = ("429 ", "302 ", "retry-after: ", "content-encoding: ", "location: ")
URL = ("http://", "https://", "@", "[::1]", ":80", " GMT", "Mon, ", "%")
KEYS = ("Bearer ", "Basic ", "\n", ",", "#")
PAGE = ("</script>", "<!--", "\u2028", "\u202e")
QUESTIONS = ("/api/ballots/0", "/grades", "/candidates/", "/winners", "?list=", "&role=", "?page=", "?id=")
STUDY = _each('/api/judgement /api/undo /api/finish "item" "ITEM" "key" "value" "time" "duration"')
RESUMED = _each('"fingerprint" "options" "FINGERPRINT" "id" "text"')
LINES = ("\n", "--", "=")
KERNELS = (" ", "\n", "\u3000", "\x85", '\\"', ":", '"')
