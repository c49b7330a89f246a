"""Here is a text: give me its words, stems, language, sentences, numbers, dates and names."""
