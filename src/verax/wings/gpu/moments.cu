// What is made of the sums of all rows: moments for the host, or the sums of a metric.

#define QUANTITIES (COUNTS + SUMS)

__device__ inline void two_sum(double& high, double& low, double x) {
    double total = high + x, virtual_ = total - high;
    low += (high - (total - virtual_)) + (x - virtual_);
    high = total;
}

#if TALLY

#define CELLS (TABLE == 3 ? K : K * K)
#define LIMBS (WEIGHTED ? 6 : 1)

// The weights of the rows with finite and with infinite losses of a rule; those of squared weights if `squared`.
struct Weights {
    double finite, infinite;
    __device__ inline Weights(const Args& a, int r, bool squared) {
        const double *counts = a.totals, *sums = a.totals + COUNTS, *extra = sums + FIRST_SUM + SUM_STEP * RULES;
        const double all = WEIGHTED ? sums[squared] : counts[0];
        const int at = infinite_at(r);
        infinite = at < 0 ? 0.0 : WEIGHTED ? extra[4 * at + 2 + squared] : counts[7 + at];
        finite = at < 0 ? all : WEIGHTED ? extra[4 * at + squared] : all - infinite;
    }
};

// Whether losses are summed relative to a number so far from their mean that digits are lost, as for compiled loops on
// the host: 128 times the mean, or ten standard deviations away from it unless it is close.
__device__ inline bool is_far(double shift, double weight, double first, double second) {
    const double total = fabs(shift * weight + first);
    return fabs(shift) * weight > 128.0 * total ||
           (first * first > 0.99 * second * weight && fabs(first) > 1e-6 * total);
}

// The moments of the losses, as the host keeps them (`Moments`), behind the totals: for weights and squared weights the
// six rows of numbers that follow; then better shifts, and whether these are needed (1) or sums are not finite (2).
__device__ inline void settle_moments(const Args& a) {
    double* out = a.totals + QUANTITIES;
    for (int r = threadIdx.x; r < RULES; r += THREADS) {
        const double* own = a.totals + COUNTS + FIRST_SUM + SUM_STEP * r;
        const double shift = a.shift[r];
        const int at = infinite_at(r);
        bool finite = true;
        for (int squared = 0; squared <= WEIGHTED; ++squared) {
            const Weights weights(a, r, squared);
            const double w = weights.finite, first = own[2 * squared], second = own[2 * squared + 1];
            const double deviation = w > 0 ? second - first / w * first : 0.0;
            double *row = out + 6 * squared * RULES + r, high = first, low = 0;
            two_sum(high, low, shift * w);
            row[0] = w;
            row[RULES] = high;
            row[2 * RULES] = low;
            row[3 * RULES] = deviation > 0 ? deviation : 0.0;
            row[4 * RULES] = weights.infinite;
            row[5 * RULES] = at < 0 ? 0.0 : a.totals[7 + at];
            finite = finite && first - first == 0 && second - second == 0;
        }
        const double w = Weights(a, r, false).finite;
        const bool far = w > 0 && is_far(shift, w, own[0], own[1]);
        const double better = far ? shift + own[0] / w : shift;
        double* row = out + (WEIGHTED ? 12 : 6) * RULES + r;
        row[0] = better;
        row[RULES] = !finite ? 2.0 : better != shift ? 1.0 : 0.0;
    }
}

// Add to a sum of a metric: `size` totals, then the sums of their rounding errors.
__device__ inline void add_to(double* state, int64 size, int64 i, double x) {
    two_sum(state[i], state[size + i], x);
}

// Add the sums of all rows to those of a metric (`verax.adapters.torch.metrics`). Shifts must have been zero.
extern "C" __global__ void add_to_states(Args a) {
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x, stride = (int64)gridDim.x * blockDim.x;
    const double *counts = a.totals, *sums = a.totals + COUNTS;
    double weight = WEIGHTED ? sums[0] : counts[0], squared = WEIGHTED ? sums[1] : counts[0];
    const int64 n_sums = 1 + 4 * RULES, n_squares = 2 + 3 * RULES;
    if (first < 6) a.state_counts[first] += (int64)counts[first];
    if (first == 0) add_to(a.state_sums, n_sums, 0, weight);
    if (first == 0 && a.state_squares) {
        add_to(a.state_squares, n_squares, 0, WEIGHTED ? counts[6] : counts[0]);
        add_to(a.state_squares, n_squares, 1, squared);
    }
    for (int64 r = first; r < RULES; r += stride) {
        const Weights weights(a, (int)r, false);
        const double* own = sums + FIRST_SUM + SUM_STEP * r;
        add_to(a.state_sums, n_sums, 1 + 4 * r, weights.finite);
        add_to(a.state_sums, n_sums, 2 + 4 * r, own[0]);
        add_to(a.state_sums, n_sums, 3 + 4 * r, own[1]);
        add_to(a.state_sums, n_sums, 4 + 4 * r, weights.infinite);
        if (!a.state_squares) continue;
        add_to(a.state_squares, n_squares, 2 + 3 * r, Weights(a, (int)r, WEIGHTED).finite);
        add_to(a.state_squares, n_squares, 3 + 3 * r, own[WEIGHTED ? 2 : 0]);
        add_to(a.state_squares, n_squares, 4 + 3 * r, own[WEIGHTED ? 3 : 1]);
    }
#if TABLE
    const int64 n_cells = CELLS + (TABLE == 3);
    double finer = 1 / a.limb, most = *a.heaviest;
    double unit = most > 0 && most < INFINITE ? ldexp(1.0, ilogb(most) + 1) : 1.0;
    for (int64 t = first; t < CELLS; t += stride) {
        double x = (double)a.cells[t], xx = x;
        if (WEIGHTED) {
            const uint64 *limbs = a.cells + t, *more = limbs + 3 * CELLS;
            x = (((double)limbs[2 * CELLS] * finer + (double)limbs[CELLS]) * finer + x) * finer * unit;
            xx = (((double)more[2 * CELLS] * finer + (double)more[CELLS]) * finer + (double)more[0]) * finer;
            xx = xx * unit * unit;
        }
        add_to(a.state_cells, n_cells, t, x);
        add_to(a.state_squared_cells, n_cells, t, xx);
    }
    if (TABLE == 3 && first == 0) {
        add_to(a.state_cells, n_cells, CELLS, WEIGHTED ? sums[SUMS - 2] : counts[COUNTS - 1]);
        add_to(a.state_squared_cells, n_cells, CELLS, WEIGHTED ? sums[SUMS - 1] : counts[COUNTS - 1]);
    }
#endif
}

#endif
