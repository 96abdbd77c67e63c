"""Pages in a browser: the election page, and what all pages and services share (`security`, `serving`)."""
