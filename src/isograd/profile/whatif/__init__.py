"""What a step would take if something were different: tasks with dependencies, run again."""
