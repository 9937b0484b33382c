"""Independent references: slow, literal, sharing no code with what they judge."""
