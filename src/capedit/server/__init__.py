"""The doors in the browser: the HTTP service with its playground, and the review app. Needs the extra `web`."""
