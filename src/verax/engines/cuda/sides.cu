// Rows of probabilities of many classes, split at the outcome: a thread has classes of one side of it only.
//
// A row has S * E places, E for each thread. Classes below the outcome take the first places, those above it the last
// ones in reverse: on both sides the next place is nearer to the outcome. Empty places come first on each side, hold
// zero, and add nothing to sums of cumulative errors. The outcome itself stands behind them all.

#if SPLIT

#define LOADS_PER_ROW ((K + 31) / 32)
// How many places of a row are empty.
#define EMPTY (S * E - (K - 1))
#define AHEAD (ROWS * LOADS_PER_ROW <= 33)
// A maximum is looked for in a few places at a time, at most 32 times.
#define GROUP (E <= 256 ? 8 : (E + 31) / 32)
constexpr int GROUPS = (E + GROUP - 1) / GROUP, GROUPS_AT_ONCE = GROUPS <= 5 ? GROUPS : 1;

// The values of a warp's next tile: on their way while it works on this one, if they fit into registers.
struct Loads {
    value_t x[AHEAD ? ROWS * LOADS_PER_ROW : 1];
};

// How many threads have classes below the outcome.
__device__ inline int threads_below(int y) { return (y + E - 1) / E; }

// Whether a row has a u-th value for a lane.
#define HAS_VALUE(u, lane) ((u) * 32 + 32 <= K || (lane) < K - (u) * 32)

__device__ inline void start_loads(const Args& a, int64 base, int lane, Loads& loads) {
#if AHEAD
    const value_t* __restrict__ p = a.p + base * a.row_stride + lane;
    int64 left = a.n - base;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        if (r >= left) break;
#pragma unroll
        for (int u = 0; u < LOADS_PER_ROW; ++u)
            if (HAS_VALUE(u, lane)) loads.x[r * LOADS_PER_ROW + u] = p[r * (DENSE ? K : a.row_stride) + u * 32];
    }
#endif
}

// Where a lane stores values of a row.
struct Ends {
    cell_t *low, *high;
    int distance;
};

__device__ inline void store(const Ends& ends, value_t x, int u, int lane) {
    if (u * 32 < ends.distance) ends.low[u * 32] = (cell_t)read(x);
    if (u * 32 >= ends.distance && HAS_VALUE(u, lane)) ends.high[-u * 32] = (cell_t)read(x);
}

// Bring a tile, which begins with row `base`, to the warp's shared memory, and start loading the next one.
__device__ inline void fetch(
    const Args& a, int64 base, int64 next, int lane, int outcome, cell_t* memory, Loads& loads) {
    __syncwarp();
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        int y = ROWS == 1 ? outcome : __shfl_sync(EVERYONE, outcome, r * S);
        int below = threads_below(y) * E;
        cell_t* row = memory + r * PLACES;
        Ends ends = {row + below - y + lane, row + S * E + y - lane, y - lane};
#if AHEAD
#pragma unroll
        for (int u = 0; u < LOADS_PER_ROW; ++u) store(ends, loads.x[r * LOADS_PER_ROW + u], u, lane);
#else
        const value_t* __restrict__ p = a.p + (base + r < a.n ? base + r : a.n - 1) * a.row_stride + lane;
        for (int begin = 0; begin < LOADS_PER_ROW; begin += 16) {
            // All loads of a batch are on their way before the first is needed.
            value_t x[16];
#pragma unroll
            for (int u = 0; u < 16; ++u)
                if (begin + u < LOADS_PER_ROW && HAS_VALUE(begin + u, lane)) x[u] = p[(begin + u) * 32];
#pragma unroll
            for (int u = 0; u < 16; ++u)
                if (begin + u < LOADS_PER_ROW) store(ends, x[u], begin + u, lane);
        }
#endif
#pragma unroll
        for (int begin = 0; begin < EMPTY; begin += 32) {
            int q = begin + lane;
            if (begin + 32 <= EMPTY || q < EMPTY) row[q < below - y ? q : q + y] = 0;
        }
    }
    start_loads(a, next, lane, loads);
    __syncwarp();
}

// The sums over the threads of one side, `first` to `last`: from this one inwards, and from outside up to it.
__device__ inline void sums_on_side(real& inside, real& outside, int s, int first, int last) {
    for (int d = 1; d < S; d <<= 1) {
        real after = __shfl_down_sync(EVERYONE, inside, d, S), before = __shfl_up_sync(EVERYONE, outside, d, S);
        if (s + d <= last) inside += after;
        if (s - d >= first) outside += before;
    }
}

// The bits of a thread's largest probability, where it has found a sign: that of zero, or of an invalid row, which has
// one afterwards.
__device__ __noinline__ order_t look_again(const cell_t* v) {
    order_t top = 0;
    for (int c = 0; c < E; ++c) {
        if (!(v[c] >= 0)) return ~(order_t)0;
        const order_t key = v[c] > 0 ? KEY_OF(v[c]) : 0;
        top = key > top ? key : top;
    }
    return top;
}

// The product of the probabilities of the outcome's sides of a thread's thresholds.
__device__ inline Product sides_of(const cell_t* v, real inner, int empty, bool plain) {
    Product product = {1, 0};
    if (plain) {
#pragma unroll 11
        for (int c = E - 1; c >= 0; --c) {
            if (c >= empty) multiply(product.m, inner);
            inner += (real)v[c];
        }
    } else {
        for (int c = E - 1; c >= empty; --c) {
            times(product, inner, false);
            inner += (real)v[c];
        }
    }
    return product;
}

// The product over the threads of a row; `plain` where it is in no thread zero or about to underflow.
__device__ inline Product group_product(Product product, bool plain) {
    if (plain) {
        int exponents = 0;
        renew(product.m, exponents);
        for (int d = 1; d < S; d <<= 1) product.m *= __shfl_xor_sync(EVERYONE, product.m, d);
        product.e = group_count(exponents) - 1023 * S;
        return settled(product);
    }
    for (int d = 1; d < S; d <<= 1) {
        renew(product);
        real m = __shfl_xor_sync(EVERYONE, product.m, d);
        int e = __shfl_xor_sync(EVERYONE, product.e, d);
        product.m *= m;
        product.e += e;
    }
    return product;
}

// The statistics of a row whose places begin at `places`; all but `cdf_log`, which is -log(row.sides).
__device__ inline Stats statistics(const Args& a, Row& row, const cell_t* places) {
    Stats stats;
    const int y = row.y, s = row.s, below = threads_below(y);
    const bool high = s >= below;
    const int first = high ? below : 0, last = high ? S - 1 : below - 1;
    const cell_t* v = places + s * E;
    const cell_t p_true = places[S * E];
    real part = 0, errors = 0, squares = 0, rest = 0;
    order_t tops[GROUPS];
    // A pass outwards in: cumulative probabilities as if the thread were the outermost one.
#pragma unroll GROUPS_AT_ONCE
    for (int g = 0; g < E; g += GROUP) {
        order_t most = 0;
#pragma unroll
        for (int c = g; c < g + GROUP; ++c) {
            if (c >= E) continue;
            const cell_t given = v[c];
            const order_t key = KEY_OF(given);
            const real x = (real)given;
            part += x;
            if (NEEDS_CDF) {
                errors += part;
                squares = fma_of(part, part, squares);
            }
            if (NEEDS_REST) rest = fma_of(x, x, rest);
            most = key > most ? key : most;
        }
        tops[g / GROUP] = most;
    }
    real inside = part, outside = part;
    sums_on_side(inside, outside, s, first, last);
    // The whole of the other side, from its innermost thread.
    const int from = high ? below - 1 : S - 1;
    const real whole = __shfl_sync(EVERYONE, outside, from < 0 ? 0 : from, S);
    const real across = from < 0 || (!high && below == S) ? (real)0 : whole;
    const real before = __shfl_up_sync(EVERYONE, outside, 1, S), after = __shfl_down_sync(EVERYONE, inside, 1, S);
    outside = s > first ? before : (real)0;
    const real inner = (s < last ? after : (real)0) + across + (real)p_true;
    const real total = outside + part + inner;
    order_t most = tops[0];
#pragma unroll
    for (int g = 1; g < GROUPS; ++g) most = tops[g] > most ? tops[g] : most;
    if (SIGN_OF(most)) {
        most = look_again(v);
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) tops[g] = most;
    }
    row.values = group_all(p_true >= 0 && !SIGN_OF(most)) && total < INF;
    row.sums = abs_of(total - 1) <= (real)a.clear;
    stats.p_true = (real)p_true;
#if NEEDS_CDF
    real sums[4] = {
        rest,
        fma_of((real)E, outside, errors),
        fma_of(outside, fma_of((real)E, outside, 2 * errors), squares),
        0,
    };
    group_sums(sums, s);
    stats.cdf_l1 = sums[1];
    stats.cdf_l2 = sums[2];
    if (NEEDS_REST) stats.rest_sq = sums[0];
#else
    if (NEEDS_REST) stats.rest_sq = group_sum(rest);
#endif
#if NEEDS_CDF_LOG
    // No side that holds the outcome has less probability than it. One question for the whole warp.
    const bool plain = __all_sync(EVERYONE, stats.p_true >= (real)PLAIN);
    int empty = (high ? (S - below) * E - (K - 1 - y) : below * E - y) - (s - first) * E;
    empty = empty > 0 ? empty : 0;
    row.sides = group_product(sides_of(v, inner, empty, plain), plain);
#endif
#if NEEDS_MODES
    const order_t own = p_true > 0 ? KEY_OF(p_true) : 0, top = group_most(own > most ? own : most);
    int modes = s == 0 && own == top, decision = own == top ? y : K;
    unsigned found = 0;
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) found |= (unsigned)(tops[g] == top) << g;
    for (; found; found &= found - 1) {
        int begin = (__ffs((int)found) - 1) * GROUP;
        for (int c = begin; c < least(begin + GROUP, E); ++c) {
            // A zero may have a sign.
            if (KEY_OF(v[c]) != top && (top != 0 || v[c] != 0)) continue;
            int place = s * E + c;
            modes += 1;
            decision = least(decision, high ? S * E + y - place : place - (below * E - y));
        }
    }
    modes = group_count(modes);
    row.decision = group_min(decision);
    row.modes = modes;
    stats.top = (real)FROM_KEY(top);
    stats.hit = own != top ? (real)0 : modes == 1 ? (real)1 : 1 / (real)modes;
    stats.answered = stats.hit;
    stats.hit_lowest = row.decision == y ? (real)1 : (real)0;
#endif
    stats.invalid = 0;
    return stats;
}

#endif
