"""Loss, schedule, loop, and runs that survive being interrupted."""
