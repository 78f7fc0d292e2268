// Rows of probabilities in registers, without branches.
//
// Logarithms, roots and quotients of a row overlap where nothing branches between them. Whatever asks for care makes
// `sure` false, and the row is done again as rows.cu has it: invalid rows, zeros with a sign, an outcome of probability
// zero or so small that a product may underflow. Other rows have the same losses either way, to the last bit.

#if QUICK_ROWS
// The statistics of a row of probabilities whose outcome is class `y`, without branches: `sure` stays true only where
// the row is valid and no cumulative probability is so small that it asks for care.
__device__ inline Stats quick_statistics(real clear, int y, const cell_t* v, int& decision, bool& sure) {
    Stats stats;
    order_t most = KEY_OF(v[0]), own = most;
    real wide[E], below[E], above[E], rest = 0;
#pragma unroll
    for (int c = 0; c < E; ++c) {
        const order_t key = KEY_OF(v[c]);
        wide[c] = widened(v[c]);
        most = key > most ? key : most;
        own = c == y ? key : own;
        if (NEEDS_REST) rest = c == y ? rest : fma_of(wide[c], wide[c], rest);
        below[c] = c == 0 ? wide[0] : below[c > 0 ? c - 1 : 0] + wide[c];
    }
    // A sign is that of zero, or of an invalid row.
    sure &= !SIGN_OF(most) && abs_of(below[E - 1] - 1) <= clear;
    const cell_t p_true = FROM_KEY(own), least_sure = NEEDS_CDF_LOG ? (cell_t)PLAIN : (cell_t)0;
    sure &= least_sure > 0 ? p_true >= least_sure : p_true > 0;
    stats.p_true = widened(p_true);
    if (NEEDS_REST) stats.rest_sq = rest;
#if NEEDS_MODES
    unsigned found = 0;
#pragma unroll
    for (int c = 0; c < E; ++c) found |= KEY_OF(v[c]) == most ? 1u << c : 0u;
    decision = __ffs((int)found) - 1;
    const real share = SHARES[__popc(found)];
    stats.top = widened(FROM_KEY(most));
    stats.hit = own == most ? share : (real)0;
    stats.answered = stats.hit;
    stats.hit_lowest = decision == y ? (real)1 : (real)0;
#endif
#if CUMULATIVE
    above[E - 1] = wide[E - 1];
#pragma unroll
    for (int c = E - 2; c > 0; --c) above[c] = above[c + 1] + wide[c];
    real errors = 0, squares = 0, product = 1;
#pragma unroll
    for (int c = 0; c < E - 1; ++c) {
        const bool under = c < y;
        const real error = under ? below[c] : above[c + 1];
        errors = c == 0 ? error : errors + error;
        squares = c == 0 ? error * error : fma_of(error, error, squares);
        if (NEEDS_CDF_LOG) {
            const real side = under ? above[c + 1] : below[c];
            product = c == 0 ? side : product * side;
        }
    }
    if (NEEDS_CDF) {
        stats.cdf_l1 = errors;
        stats.cdf_l2 = squares;
    }
    if (NEEDS_CDF_LOG) stats.cdf_log = -quick_log(product, sure);
#endif
    stats.invalid = 0;
    return stats;
}
#endif
