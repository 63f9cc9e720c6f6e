"""Pure maths: numbers in, numbers out."""
