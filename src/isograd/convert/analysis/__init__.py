"""What holds for a project or a place of it, by its syntax trees: answers, and no rewriting."""
