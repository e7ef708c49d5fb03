"""Interactive charts of the pages, with still pictures for everywhere else."""
