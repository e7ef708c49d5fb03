"""What the make targets run, and the extensions that build the pages."""
