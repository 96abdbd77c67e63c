"""The formats of pictures, as far as needed to cut their notes out: one file a format."""
