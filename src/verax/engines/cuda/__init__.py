"""Rows on a CUDA GPU, whatever library holds them: one fused kernel, written from the rules' own formulas."""
