"""What the chapter on other people's code shows: their names, masks and habits."""
