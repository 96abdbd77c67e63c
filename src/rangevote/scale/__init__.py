"""Many ballots: worker processes, shards, Parquet, Ray Data. All give the same bytes as one loop would."""
