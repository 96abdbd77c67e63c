// Numbers as the page writes them.

/** @param {number | null} number a score or grade; null is minus infinity @param {number} [digits] */
export function fixed(number, digits = 4) {
  return number === null ? "−∞" : number.toFixed(digits).replace("-", "−");
}

/**
 * A small number with three digits that count.
 * @param {number | null} number
 */
export function small(number) {
  if (number === null) return "–";
  if (number === 0) return "0";
  return Math.abs(number) < 0.001 ? powers(Math.log10(Math.abs(number)), number < 0) : number.toPrecision(3);
}

/**
 * A probability, also where it is too small for a number.
 * @param {{logprob: number | null, share: number | null}} row
 */
export function probability({ logprob, share }) {
  if (logprob === null) return share === 0 ? "0" : "unknown";
  return logprob >= Math.log(0.0001) ? Math.min(1, Math.exp(logprob)).toPrecision(3) : powers(logprob / Math.LN10, false);
}

/** @param {number} log10 @param {boolean} negative */
function powers(log10, negative) {
  let exponent = Math.floor(log10);
  let mantissa = (10 ** (log10 - exponent)).toFixed(2);
  if (mantissa === "10.00") [mantissa, exponent] = ["1.00", exponent + 1];
  return `${negative ? "−" : ""}${mantissa}e${exponent < 0 ? "−" : ""}${Math.abs(exponent)}`;
}

/**
 * A whole number.
 * @param {number} number
 */
export function grouped(number) {
  return number.toLocaleString("en");
}

/** @param {number} number @param {string} thing */
export function counted(number, thing) {
  return `${grouped(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/**
 * A share as a percentage; what is not all is never written as all.
 * @param {number} share
 */
export function percent(share) {
  if (share > 0 && share < 0.01) return "<1 %";
  return share > 0.99 && share < 1 - 1e-9 ? ">99 %" : `${Math.round(100 * share)} %`;
}
