"""Here is a library, perhaps a damaged one: tell me its state, clean it, repair it, erase documents from it."""
