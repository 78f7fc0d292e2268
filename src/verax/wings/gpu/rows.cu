// Rows of forecasts: how the threads of a row work together, how rows are read, their statistics.

// ---- the S threads of a row -----------------------------------------------------------------

template <typename T> __device__ inline T group_sum(T x) {
    for (int d = 1; d < S; d <<= 1) x += __shfl_xor_sync(EVERYONE, x, d);
    return x;
}

// The same of four numbers, of which thread s gets the one at s % 4: at first a thread gives up half of them to its
// neighbour, and gets the other half.
__device__ inline real group_sums(const real (&x)[4], int s) {
    const bool odd = s & 1, second = s & 2;
    real one = odd ? x[1] : x[0], other = odd ? x[3] : x[2];
    one += __shfl_xor_sync(EVERYONE, odd ? x[0] : x[1], 1);
    other += __shfl_xor_sync(EVERYONE, odd ? x[2] : x[3], 1);
    real own = second ? other : one;
    own += __shfl_xor_sync(EVERYONE, second ? one : other, 2);
    for (int d = 4; d < S; d <<= 1) own += __shfl_xor_sync(EVERYONE, own, d);
    return own;
}

__device__ inline cell_t group_max(cell_t x) {
    for (int d = 1; d < S; d <<= 1) {
        cell_t other = __shfl_xor_sync(EVERYONE, x, d);
        x = other > x ? other : x;
    }
    return x;
}

// What one instruction does for the integers of a whole warp.
#define AT_ONCE (S == 32 && __CUDA_ARCH__ >= 800)

__device__ inline order_t group_most(order_t x) {
#if AT_ONCE && VALUE > 0
    return __reduce_max_sync(EVERYONE, x);
#endif
    for (int d = 1; d < S; d <<= 1) {
        order_t other = __shfl_xor_sync(EVERYONE, x, d);
        x = other > x ? other : x;
    }
    return x;
}

__device__ inline int group_count(int x) {
#if AT_ONCE
    return __reduce_add_sync(EVERYONE, x);
#else
    return group_sum(x);
#endif
}

__device__ inline int group_min(int x) {
#if AT_ONCE
    return __reduce_min_sync(EVERYONE, x);
#endif
    for (int d = 1; d < S; d <<= 1) x = least(x, __shfl_xor_sync(EVERYONE, x, d));
    return x;
}

__device__ inline bool group_all(bool x) {
    if (S == 32) return __all_sync(EVERYONE, x);
    int all = x;
    for (int d = 1; d < S; d <<= 1) all &= __shfl_xor_sync(EVERYONE, all, d);
    return all;
}

// The sum over the threads of the row before this one (after this one), without a subtraction.
__device__ inline real sum_before(real x, int s) {
    for (int d = 1; d < S; d <<= 1) {
        real other = __shfl_up_sync(EVERYONE, x, d, S);
        if (s >= d) x += other;
    }
    x = S > 1 ? __shfl_up_sync(EVERYONE, x, 1, S) : (real)0;
    return s == 0 ? (real)0 : x;
}

__device__ inline real sum_after(real x, int s) {
    for (int d = 1; d < S; d <<= 1) {
        real other = __shfl_down_sync(EVERYONE, x, d, S);
        if (s + d < S) x += other;
    }
    x = S > 1 ? __shfl_down_sync(EVERYONE, x, 1, S) : (real)0;
    return s == S - 1 ? (real)0 : x;
}

// ---- statistics -----------------------------------------------------------------------------

// What is known of a thread's row while it works on it.
struct Row {
    int64 i;             // its number
    bool active;         // whether there is such a row
    bool kept;           // whether it counts
    bool inside;         // whether its outcome is a class
    bool values, sums;   // whether its values, and its sum, are valid
    int y, s, first;     // outcome; place among the row's threads; its first class
    int decision, modes;
    real before, after;  // probability of the classes of the threads before and after
    real others;         // probability of all classes but the outcome
    real low_sum, high_sum;  // sums of the cumulative errors below and above the outcome
    real highest, log_total;  // of logits: the largest, and log(sum(exp(z - largest)))
    Product sides;       // of the outcome's sides of all thresholds, where its logarithm is taken later
    bool far;            // logits so far apart that probabilities underflow
};

#if LOGITS && NEEDS_CDF_LOG
// log(sum(exp(z))) of a growing set of logits.
struct LogSum {
    real m, s;
    __device__ inline void add(real z) {
        if (z > m) {
            s = s * exp_of(m - z) + 1;
            m = z;
        } else if (z > -INF) {
            s += exp_of(z - m);
        }
    }
    __device__ inline real value() const { return m + log_of(s); }
};

// The sum over the thresholds of minus the log probability of the outcome's side, from the logits themselves.
__device__ __noinline__ real far_cdf_log(const value_t* z, int64 stride, int y, real whole) {
    real sum = 0;
    LogSum below = {-INF, 0}, above = {-INF, 0};
    for (int j = 0; j < K - 1; ++j) {
        below.add((real)read(z[j * stride]));
        if (j >= y) sum += whole - below.value();
    }
    for (int j = K - 1; j > 0; --j) {
        above.add((real)read(z[j * stride]));
        if (j <= y) sum += whole - above.value();
    }
    return sum;
}
#endif

#if REGISTERS || HELD
#define LOOP _Pragma("unroll")
#else
#define LOOP _Pragma("unroll 4")
#endif
#define EACH_UP(c) for (int c = 0; c < E; ++c)
#define EACH_DOWN(c) for (int c = E - 1; c >= 0; --c)

#if !SPLIT && !WALKS

#if REGISTERS

// Bring a row to the thread's registers.
__device__ inline void fetch(const Args& a, const Row& row, cell_t* v) {
    const value_t* __restrict__ p = a.p + row.i * a.row_stride;
    LOOP EACH_UP(c) v[c] = (cell_t)read(p[c * (COLUMNS ? a.column_stride : 1)]);
}

#else

// A tile is ROWS rows of S * E places, of which K have values. A thread loads its u-th value: neighbouring threads
// load neighbouring memory.
#if DENSE
#define LOADS ((ROWS * K + 31) / 32)
#else
#define LOADS E
#endif

__device__ inline void place_of(int u, int lane, int& r, int& j) {
    int t = u * 32 + lane;
    const int width = DENSE ? K : S * E;
    r = ROWS == 1 ? 0 : COLUMNS ? t % ROWS : t / width;
    j = ROWS == 1 ? t : COLUMNS ? t / ROWS : t % width;
}

__device__ inline void store(cell_t* memory, value_t x, int u, int lane) {
    int r, j;
    place_of(u, lane, r, j);
    if (j < K && r < ROWS) memory[r * S * E + j] = (cell_t)read(x);
}

__device__ inline value_t load(const Args& a, int64 base, int u, int lane) {
    int r, j;
    place_of(u, lane, r, j);
    int64 i = base + r < a.n ? base + r : a.n - 1;
    return a.p[i * a.row_stride + (j < K ? j : K - 1) * (COLUMNS ? a.column_stride : 1)];
}

// The values of a warp's next tile: on their way while it works on this one, if they fit into registers.
#define AHEAD (DENSE && LOADS <= (HELD ? 25 : 33))
struct Loads {
    value_t x[AHEAD ? LOADS : 1];
};

__device__ inline void start_loads(const Args& a, int64 base, int lane, Loads& loads) {
#if AHEAD
    const value_t* __restrict__ p = a.p + base * K + lane;
    int64 left = (a.n - base) * K - lane;
    if (left > 32 * LOADS) {
#pragma unroll
        for (int u = 0; u < LOADS; ++u) loads.x[u] = p[u * 32];
    } else {
#pragma unroll
        for (int u = 0; u < LOADS; ++u)
            if (u * 32 < left) loads.x[u] = p[u * 32];
    }
#endif
}

// Bring a tile, which begins with row `base`, to the warp's shared memory, and start loading the next one.
__device__ inline void fetch(const Args& a, int64 base, int64 next, int lane, cell_t* memory, Loads& loads) {
    __syncwarp();
#if AHEAD
#pragma unroll
    for (int u = 0; u < LOADS; ++u) store(memory, loads.x[u], u, lane);
    start_loads(a, next, lane, loads);
#else
    for (int begin = 0; begin < LOADS; begin += 16) {
        // All loads of a batch are on their way before the first is needed.
        value_t x[16];
#pragma unroll
        for (int u = 0; u < 16; ++u) x[u] = load(a, base, begin + u < LOADS ? begin + u : LOADS - 1, lane);
#pragma unroll
        for (int u = 0; u < 16; ++u)
            if (begin + u < LOADS) store(memory, x[u], begin + u, lane);
    }
#endif
    // Places beyond the K classes hold a value that changes nothing.
    const int more = S * E - K;
    if (more > 0) {
        const int width = more > 0 ? more : 1;
        for (int t = lane; t < ROWS * more; t += 32)
            memory[t / width * S * E + K + t % width] = LOGITS ? -INF : (cell_t)0;
    }
    __syncwarp();
}

#endif

#if CUMULATIVE && !REGISTERS
// Sums over a thread's classes from both ends: cumulative errors, their squares, products of the other sides.
struct Walk {
    real below, above, low, high, squares;
    Product up, down;
};

__device__ inline void step(Walk& walk, const cell_t* v, int first, int y, int c, bool plain) {
    int j = first + c, i = first + E - 1 - c;
    walk.below += (real)v[c];
    walk.above += (real)v[E - 1 - c];
    if (NEEDS_CDF) {
        if (j < y) {
            walk.low += walk.below;
            walk.squares = fma_of(walk.below, walk.below, walk.squares);
        }
        if (i > y) {
            walk.high += walk.above;
            walk.squares = fma_of(walk.above, walk.above, walk.squares);
        }
    }
    if (NEEDS_CDF_LOG) {
        if ((unsigned)(j - y) < (unsigned)(K - 1 - y)) times(walk.up, walk.below, plain);
        if ((unsigned)(i - 1) < (unsigned)y) times(walk.down, walk.above, plain);
    }
}
#endif

// The statistics of a row; `v` holds its probabilities afterwards.
__device__ inline Stats statistics(const Args& a, Row& row, cell_t* v) {
    Stats stats;
    int y = row.y, first = row.first;
    row.values = true;
#if LOGITS
    real highest = -INF, z_true = 0, total = 0;
    LOOP EACH_UP(c) {
        real z = v[c];
        row.values &= z < INF;
        highest = z > highest ? z : highest;
        z_true = first + c == y ? z : z_true;
    }
    highest = group_max(highest);
    z_true = group_sum(z_true);
    row.values = group_all(row.values) && highest > -INF;
    LOOP EACH_UP(c) {
        real e = exp_of(v[c] - highest);
        v[c] = e;
        total += e;
    }
    total = group_sum(total);
    real inverse = 1 / total;
    row.highest = highest;
    row.log_total = log_of(total);
    stats.log_true = (z_true - highest) - row.log_total;
#else
    const real inverse = 1;
#endif
    cell_t top = -1, p_true = 0;
    real part = 0, rest = 0, others = 0;
#if REGISTERS
    real wide[E];
#endif
    LOOP EACH_UP(c) {
        if (LOGITS) v[c] = v[c] * inverse;
        const cell_t given = v[c];
        const real x = widened(given);
#if REGISTERS
        wide[c] = x;
#endif
        bool hit = first + c == y;
        part = REGISTERS && c == 0 ? x : part + x;
        if (NEEDS_OTHERS) others += hit ? (real)0 : x;
        if (NEEDS_REST) rest = hit ? rest : fma_of(x, x, rest);
        p_true = hit ? given : p_true;
        if (!LOGITS) row.values &= given >= 0;
        if (NEEDS_MODES) top = greater(given, top);
    }
    p_true = group_sum(p_true);
    stats.p_true = (real)p_true;
    if (NEEDS_REST) stats.rest_sq = group_sum(rest);
    if (NEEDS_OTHERS) row.others = group_sum(others);
    row.sums = true;
    if (!LOGITS) {
        real total = group_sum(part);
        row.values = group_all(row.values) && total < INF;
        row.sums = abs_of(total - 1) <= (real)a.clear;
    }
#if NEEDS_MODES
    top = group_max(top);
#if REGISTERS
    unsigned found = 0;
    LOOP EACH_UP(c) found |= v[c] == top ? 1u << c : 0u;
    int modes = __popc(found);
    row.decision = __ffs((int)found) - 1;
#else
    int modes = 0, decision = K;
    LOOP EACH_DOWN(c) {
        bool mode = v[c] == top;
        modes += mode;
        decision = mode ? first + c : decision;
    }
    modes = group_count(modes);
    row.decision = group_min(decision);
#endif
    row.modes = modes;
    stats.top = (real)top;
    stats.hit = p_true != top ? (real)0 : modes == 1 ? (real)1 : 1 / (real)modes;
    stats.answered = stats.hit;
    stats.hit_lowest = row.decision == y ? (real)1 : (real)0;
#endif
#if CUMULATIVE
    row.before = sum_before(part, row.s);
    row.after = sum_after(part, row.s);
    real low = 0, high = 0, squares = 0, scaled = 0;
    Product product = {1, 0};
    // No side that holds the outcome has less probability than it.
    bool plain = stats.p_true >= (real)PLAIN;
#if REGISTERS
    real above[E];
    above[E - 1] = wide[E - 1];
#pragma unroll
    for (int c = E - 2; c >= 0; --c) above[c] = above[c + 1] + wide[c];
    real below = 0;
#pragma unroll
    for (int c = 0; c < E - 1; ++c) {
        below = c == 0 ? wide[0] : below + wide[c];
        bool under = c < y;
        real error = under ? below : above[c + 1];
        if (NEEDS_HALVES) {
            low += under ? error : (real)0;
            high += under ? (real)0 : error;
        } else {
            low = c == 0 ? error : low + error;
        }
        squares = c == 0 ? error * error : fma_of(error, error, squares);
        if (NEEDS_CDF_LOG) {
            real side = under ? above[c + 1] : below;
            product.m = c == 0 ? side : product.m * side;
        }
    }
    if (NEEDS_CDF_LOG && !plain) {
        // Once more, with care.
        product = {1, 0};
        below = 0;
#pragma unroll
        for (int c = 0; c < E - 1; ++c) {
            below += wide[c];
            times(product, c < y ? above[c + 1] : below, false);
        }
        scaled = (real)product.e * (real)0.6931471805599453;
    }
#else
    Walk walk = {row.before, row.after, 0, 0, 0, {1, 0}, {1, 0}};
    // One question for the whole warp, because a question in the loop would cost more than the loop.
    if (!NEEDS_CDF_LOG) {
        LOOP EACH_UP(c) step(walk, v, first, y, c, true);
    } else if (__all_sync(EVERYONE, plain)) {
        LOOP EACH_UP(c) {
            step(walk, v, first, y, c, true);
            if (c % 4 != 3) continue;
            renew(walk.up);
            renew(walk.down);
        }
    } else {
        LOOP EACH_UP(c) step(walk, v, first, y, c, false);
    }
    low = walk.low;
    high = walk.high;
    squares = walk.squares;
    product = walk.up;
    renew(walk.down);
    times(product, walk.down.m, false);
    product.e += walk.down.e;
    scaled = (real)product.e * (real)0.6931471805599453;
#endif
#if NEEDS_CDF
    row.low_sum = group_sum(low);
    row.high_sum = group_sum(high);
    stats.cdf_l1 = row.low_sum + row.high_sum;
    stats.cdf_l2 = group_sum(squares);
#endif
#if NEEDS_CDF_LOG
    stats.cdf_log = -group_sum(log_of(product.m) + scaled);
    row.far = false;
#if LOGITS
    // No side that holds the outcome has less probability than it, so this is rare.
    if (!__all_sync(EVERYONE, stats.p_true >= FAR)) {
        real below_true = 0, above_true = 0;
        LOOP EACH_UP(c) {
            below_true += first + c <= y ? v[c] : (real)0;
            above_true += first + c >= y ? v[c] : (real)0;
        }
        below_true = group_sum(below_true);
        above_true = group_sum(above_true);
        real smallest = minimum(y < K - 1 ? below_true : (real)1, y > 0 ? above_true : (real)1);
        row.far = row.values && smallest < FAR;
        // One thread walks over such a row, and tells the others.
        if (row.far && row.s == 0)
            stats.cdf_log =
                far_cdf_log(a.p + row.i * a.row_stride, a.column_stride, y, row.highest + row.log_total);
        if (S > 1) {
            real exact = __shfl_sync(EVERYONE, stats.cdf_log, 0, S);
            stats.cdf_log = row.far ? exact : stats.cdf_log;
        }
    }
#endif
#endif
#endif
    stats.invalid = 0;
    return stats;
}

#endif

// Which row a thread works on, of a tile that begins with row `base`, and what is known of it at once.
__device__ inline Row begin(const Args& a, int64 base, int lane) {
    Row row;
    row.sides = {1, 0};
    row.s = S == 1 ? 0 : lane % S;
    row.i = base + lane / S;
    row.active = row.i < a.n;
    row.i = row.active ? row.i : a.n - 1;
    row.first = row.s * E;
    int64 y = (int64)a.y[row.i * a.y_stride];
    row.kept = row.active && !(IGNORE && y == a.ignore);
    row.inside = y >= 0 && y < K;
    row.y = row.inside ? (int)y : 0;
    return row;
}

__device__ inline double weight_of(const Args& a, int64 i, int y) {
    double w = WEIGHTED ? (double)a.w[i * a.w_stride] * a.scale : 1.0;
    return CLASSED ? w * (double)a.class_weights[y] : w;
}
