"""What not every program asks for: modules that are imported when a name of theirs is first used."""
