"""What somebody may see of a library, part by part."""
