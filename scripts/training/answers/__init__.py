"""Train an adapter (LoRA) with which a model answers in a sentence, or refuses.

    python -m scripts.training.answers.build     question sets  ->  examples: prompts and answers in tokens
    python -m scripts.training.answers.train     examples, GGUF file  ->  adapter for llama.cpp
    python -m scripts.training.answers.evaluate  held-out examples, GGUF file, adapter  ->  right, refused, wrong

Only `train` needs PyTorch. Of this project it needs only this folder, and of other packages NumPy, gguf and click, so
that it runs on a machine with a GPU that has nothing else. Where a transfer may not be larger than some size, `split`
cuts the GGUF file and `cat` joins it.
"""
