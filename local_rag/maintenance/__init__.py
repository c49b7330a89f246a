"""See to a library and the machine it lives on: status, clean, repair, doctor."""
