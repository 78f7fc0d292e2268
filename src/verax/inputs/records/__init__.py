"""Records with a list each: responses of language models, outputs of classifiers, logs."""
