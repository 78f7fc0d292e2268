// Losses of rows of logits, and their gradients.

// ---- losses and their gradients -------------------------------------------------------------

#if HELD
// A thread's logits stay in its registers, of which two blocks have enough; the tile is then free.
#define BLOCKS_HELD 2
#define HOLD(v, place) \
    real v[E]; \
    LOOP EACH_UP(c) v[c] = (place)[c]
#else
#define BLOCKS_HELD 1
#define HOLD(v, place) real* v = place
#endif

#if FORWARD

// The loss of each row times its weight: one by one (EACH), or their sum, and the sum of the weights.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_HELD) forward(Args a) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    real* memory = (real*)arena + warp * TILE;
    double sums[2] = {0, 0};
    int64 stride = (int64)gridDim.x * WARPS * ROWS, base = ((int64)blockIdx.x * WARPS + warp) * ROWS;
#if !REGISTERS
    Loads loads;
    start_loads(a, base, lane, loads);
#endif
    for (; base < a.n; base += stride) {
        Row row = begin(a, base, lane);
#if REGISTERS
        real v[E];
        fetch(a, row, v);
#else
        fetch(a, base, base + stride, lane, memory, loads);
        HOLD(v, memory + lane * E);
#endif
        Stats stats = statistics(a, row, v);
        if (!row.active) continue;
        real losses[1];
        formulas(stats, losses);
        real w = (real)weight_of(a, row.i, row.y);
        real loss = !row.kept ? (real)0 : row.inside ? losses[0] * w : (real)NOT_A_NUMBER;
#if EACH
        if (row.s == 0) a.out[row.i] = loss;
#else
        sums[0] += (double)loss;
        sums[1] += row.kept ? (double)w : 0.0;
#endif
    }
#if !EACH
    reduce_block(a, 0, sums, lane % S == 0);
#endif
}

#endif

#if FORWARD || WITH_LOSS

// The sum over all blocks, or the mean; the total weight stays in `totals`.
extern "C" __global__ void settle(Args a) {
    int lane = threadIdx.x;
    double sum = 0, weight = 0;
    for (int64 block = lane; block < a.blocks; block += 32) {
        sum += a.partial[2 * block];
        weight += a.partial[2 * block + 1];
    }
    sum = warp_sum(sum);
    weight = warp_sum(weight);
    if (lane == 0) {
        a.out[0] = (real)(a.mean ? sum / weight : sum);
        a.totals[0] = weight;
    }
}

#endif

#if BACKWARD

#if NEEDS_CDF_LOG
#define SHARE(c) , share[c]
#else
#define SHARE(c) , (real)0
#endif

// The derivative of the loss in the logit of class j, whose probability is x. `distance` is the sum of the
// cumulative errors between j and the outcome; `share` that of x over the sides of thresholds that hold both.
__device__ inline real class_gradient(
    const Partials& d, const Stats& stats, const Row& row, int j, real x, real distance, real share) {
    bool hit = j == row.y;
    real slope = 0;
    if (HAS_REST_SQ) slope += 2 * d.rest_sq * ((hit ? (real)0 : x) - stats.rest_sq);
    if (HAS_CDF_L2) slope += 2 * d.cdf_l2 * (distance - stats.cdf_l2);
    if (HAS_CDF_L1) slope += d.cdf_l1 * ((real)(j > row.y ? j - row.y : row.y - j) - stats.cdf_l1);
    if (HAS_TOP) slope += d.top * ((x == stats.top ? 1 / (real)row.modes : (real)0) - stats.top);
    slope *= x;
    if (HAS_CDF_LOG) slope += d.cdf_log * ((real)(K - 1) * x - share);
    // 1 - x as the sum of the others keeps all digits where x is nearly one.
    if (HAS_LOG_TRUE) slope += d.log_true * (hit ? row.others : -x);
    return slope;
}

#if NEEDS_CDF_LOG
// The shares of all classes of a row whose probabilities underflow, from logarithms; by one thread.
__device__ __noinline__ void far_shares(const value_t* z, int64 stride, int y, real* share) {
    // First the logarithms of P(<= j) above the outcome and of P(>= j) below it, up to a common constant.
    LogSum below = {-INF, 0}, above = {-INF, 0};
    real below_y = 0, above_y = 0;
    for (int j = 0; j < K; ++j) {
        below.add((real)read(z[j * stride]));
        if (j == y) below_y = below.value();
        if (j > y) share[j] = below.value();
    }
    for (int j = K - 1; j >= 0; --j) {
        above.add((real)read(z[j * stride]));
        if (j == y) above_y = above.value();
        if (j < y) share[j] = above.value();
    }
    // Then the sums of their inverses over the thresholds that have a class and the outcome on one side.
    LogSum odds = {-INF, 0}, more = {-INF, 0};
    for (int j = K - 1; j > y; --j) {
        if (j < K - 1) odds.add(-share[j]);
        share[j] = exp_of((real)read(z[j * stride]) + odds.value());
    }
    if (y < K - 1) odds.add(-below_y);
    real from_below = odds.value();
    for (int j = 0; j < y; ++j) {
        real own = (real)read(z[j * stride]);
        if (j > 0) more.add(-share[j]);
        share[j] = exp_of(own + more.value()) + exp_of(own + from_below);
    }
    if (y > 0) more.add(-above_y);
    real from_above = more.value(), own = (real)read(z[y * stride]);
    share[y] = exp_of(own + from_below) + exp_of(own + from_above);
    for (int j = y + 1; j < K; ++j) share[j] += exp_of((real)read(z[j * stride]) + from_above);
}
#endif

// The gradient; WITH_LOSS, of rows without weights, also the loss: then there is no derivative from above yet.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_HELD) backward(Args a) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#if WITH_LOSS
    double sums[2] = {0, 0};
#endif
    real* memory = (real*)arena + warp * TILE * (NEEDS_CDF_LOG && !REGISTERS && !HELD ? 2 : 1);
    double divisor = WITH_LOSS ? (a.mean ? (double)a.n : 1.0) : a.divisor ? *a.divisor : 1.0;
    int64 stride = (int64)gridDim.x * WARPS * ROWS, base = ((int64)blockIdx.x * WARPS + warp) * ROWS;
#if !REGISTERS
    Loads loads;
    start_loads(a, base, lane, loads);
#endif
    for (; base < a.n; base += stride) {
        Row row = begin(a, base, lane);
#if REGISTERS
        real v[E];
        fetch(a, row, v);
#else
        fetch(a, base, base + stride, lane, memory, loads);
        HOLD(v, memory + lane * E);
#endif
#if NEEDS_CDF_LOG && (REGISTERS || HELD)
        real share[E];
#elif NEEDS_CDF_LOG
        real* share = memory + TILE + lane * E;
#endif
        Stats stats = statistics(a, row, v);
        Partials d;
        slopes(stats, d);
#if WITH_LOSS
        real scale = (real)(1 / divisor);
        if (row.active) {
            real losses[1];
            formulas(stats, losses);
            sums[0] += row.inside ? (double)losses[0] : NOT_A_NUMBER;
            sums[1] += 1;
        }
#else
        real scale = (real)(weight_of(a, row.i, row.y) * (double)a.upstream[row.i * a.upstream_stride] / divisor);
#endif
        if (!row.inside) scale = (real)NOT_A_NUMBER;
        int y = row.y, first = row.first;
#if NEEDS_CDF_LOG
        // share[c]: what class k takes of the outcome's sides of all thresholds, the sum of p_k / P(side).
#if HELD
        if (!__all_sync(EVERYONE, !row.far)) {
            // One thread writes those of a whole row to the tile, which everyone has read.
            __syncwarp();
            real* shares = memory + lane * E;
            if (row.far && row.s == 0) far_shares(a.p + row.i * a.row_stride, a.column_stride, y, shares);
            __syncwarp();
            LOOP EACH_UP(c) share[c] = shares[c];
        }
#else
        if (row.far && row.s == 0) far_shares(a.p + row.i * a.row_stride, a.column_stride, y, share);
        if (!REGISTERS) __syncwarp();
#endif
        {
        real below = row.before, above = row.after, from_below = 0, from_above = 0;
        if (!row.far) {
            LOOP EACH_UP(c) {
                int j = first + c;
                below += v[c];
                if (j >= y) share[c] = inverse_of(below);
                if (j >= y && j < K - 1) from_below += share[c];
            }
            LOOP EACH_DOWN(c) {
                int j = first + c;
                above += v[c];
                if (j > y) continue;
                real odds = inverse_of(above);
                if (j < y) share[c] = odds;
                if (j > 0) from_above += odds;
            }
        }
        real odds_after = sum_after(from_below, row.s), odds_before = sum_before(from_above, row.s);
        real all_below = group_sum(from_below), all_above = group_sum(from_above);
        if (!row.far) {
            LOOP EACH_DOWN(c) {
                int j = first + c;
                if (j > y) {
                    if (j < K - 1) odds_after += share[c];
                    share[c] = v[c] * (odds_after + all_above);
                }
            }
            LOOP EACH_UP(c) {
                int j = first + c;
                if (j <= y) {
                    if (j > 0 && j < y) odds_before += share[c];
                    share[c] = v[c] * (all_below + (j == y ? all_above : odds_before));
                }
            }
        }
        }
#endif
#if NEEDS_CDF
        real sum_of_low = 0, sum_of_high = 0;
        {
            real below = row.before, above = row.after;
            LOOP EACH_UP(c) {
                below += v[c];
                if (first + c < y) sum_of_low += below;
            }
            LOOP EACH_DOWN(c) {
                above += v[c];
                if (first + c > y) sum_of_high += above;
            }
        }
        // The sums of the cumulative errors before, and after, this thread's classes.
        real low = sum_before(sum_of_low, row.s), high = sum_after(sum_of_high, row.s);
#if REGISTERS
        real distance[E];
        {
            real above = row.after;
            LOOP EACH_DOWN(c) {
                distance[c] = row.high_sum - high;
                above += v[c];
                if (first + c > y) high += above;
            }
        }
        real below = row.before;
#else
        {
            // Classes above the outcome come first: their probabilities are replaced by their gradients.
            real above = row.after;
            LOOP EACH_DOWN(c) {
                int j = first + c;
                if (j <= y) break;
                real x = v[c];
                above += x;
                real distance = row.high_sum - high;
                high += above;
                v[c] = scale * class_gradient(d, stats, row, j, x, distance SHARE(c));
            }
        }
        real below = row.before;
#endif
        LOOP EACH_UP(c) {
            int j = first + c;
#if REGISTERS
            real x = v[c];
            real up = row.low_sum - low;
            real far = j > y ? distance[c] : up > 0 ? up : (real)0;
            below += x;
            if (j < y) low += below;
            v[c] = scale * class_gradient(d, stats, row, j, x, far SHARE(c));
#else
            if (j > y) break;
            real x = v[c];
            real up = row.low_sum - low;
            below += x;
            if (j < y) low += below;
            v[c] = scale * class_gradient(d, stats, row, j, x, j == y || up < 0 ? (real)0 : up SHARE(c));
#endif
        }
#else
        LOOP EACH_UP(c) v[c] = scale * class_gradient(d, stats, row, first + c, v[c], (real)0 SHARE(c));
#endif
        if (!row.kept) {
            LOOP EACH_UP(c) v[c] = 0;
        }
#if REGISTERS
        if (row.active) {
            LOOP EACH_UP(c) a.gradient[row.i * K + c] = write(v[c]);
        }
#else
#if HELD
        __syncwarp();
        LOOP EACH_UP(c) memory[lane * E + c] = v[c];
#endif
        __syncwarp();
        int64 rows = a.n - base < ROWS ? a.n - base : ROWS;
        for (int t = lane; t < (int)rows * K; t += 32)
            a.gradient[base * K + t] = write(memory[ROWS == 1 ? t : t / K * S * E + t % K]);
#endif
    }
#if WITH_LOSS
    reduce_block(a, 0, sums, lane % S == 0);
#endif
}

#if WITH_LOSS
// Multiply the gradient by the derivative from above, which is known now. It mostly is one.
extern "C" __global__ void rescale(Args a) {
    real above = *a.upstream;
    if (above == 1) return;
    int64 stride = (int64)gridDim.x * blockDim.x;
    for (int64 t = (int64)blockIdx.x * blockDim.x + threadIdx.x; t < a.n * K; t += stride)
        a.gradient[t] = write((real)read(a.gradient[t]) * above);
}
#endif

#endif
