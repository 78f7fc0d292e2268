"""Adapters to scikit-learn, PyTorch, Lightning, Keras, boosting libraries and MLflow."""
