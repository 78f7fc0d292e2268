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
// How many steps over places are written out one after the other.
constexpr int PLACES_AT_ONCE = E <= 40 ? E : 11, LOOKS_AT_ONCE = E <= 2 * S ? 2 : 1;

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

#if AHEAD
// Store the values of a row, eight of a lane at a time: all on one side of the outcome, except around it.
__device__ inline void store_all(const Ends& ends, const value_t* x, int y, int lane) {
#pragma unroll
    for (int begin = 0; begin < LOADS_PER_ROW; begin += 8) {
        const int end = begin + 8 < LOADS_PER_ROW ? begin + 8 : LOADS_PER_ROW;
        if (end * 32 <= y) {
#pragma unroll
            for (int u = begin; u < end; ++u) ends.low[u * 32] = (cell_t)read(x[u]);
        } else if (begin * 32 >= y) {
#pragma unroll
            for (int u = begin; u < end; ++u)
                if (HAS_VALUE(u, lane)) ends.high[-u * 32] = (cell_t)read(x[u]);
        } else {
#pragma unroll
            for (int u = begin; u < end; ++u) store(ends, x[u], u, lane);
        }
    }
}
#endif

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
        store_all(ends, loads.x + r * LOADS_PER_ROW, y, lane);
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

// The sums over the threads on this one's side that are farther from the outcome, and over all others but itself: both
// from exchanges between pairs of threads, in the order of their classes.
__device__ inline void sums_around(real part, int s, int below, real& outside, real& inner, real& total) {
    // Threads above the outcome have their classes in reverse; twice reversed is as before.
    const bool high = s >= below;
    const int there = high ? below + S - 1 - s : s;
    real before = 0, after = 0;
    total = __shfl_sync(EVERYONE, part, there, S);
#pragma unroll
    for (int d = 1; d < S; d <<= 1) {
        const real other = __shfl_xor_sync(EVERYONE, total, d);
        if (s & d) add(before, other);
        else add(after, other);
        total += other;
    }
    outside = __shfl_sync(EVERYONE, high ? after : before, there, S);
    inner = __shfl_sync(EVERYONE, high ? before : after, there, S);
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
#pragma unroll PLACES_AT_ONCE
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

// What the threads of a row find, for the one thread that makes statistics of it.
struct Brief {
    real sums[3];  // of squared probabilities, of cumulative errors and of their squares
    Product sides;
    int y, decision;
    cell_t p_true, top;
    int modes;  // how many classes are as likely as the outcome, if none is more likely
    bool values, sums_to_one;

    __device__ inline Stats stats() const {
        Stats stats;
        stats.p_true = (real)p_true;
        if (NEEDS_REST) stats.rest_sq = sums[0];
        if (NEEDS_CDF) {
            stats.cdf_l1 = sums[1];
            stats.cdf_l2 = sums[2];
        }
        if (NEEDS_CDF_LOG) stats.cdf_log = -log_of(sides);
        if (NEEDS_MODES) {
            stats.top = (real)top;
            stats.hit = modes == 0 ? (real)0 : modes == 1 ? (real)1 : 1 / (real)modes;
            stats.answered = stats.hit;
            stats.hit_lowest = decision == y ? (real)1 : (real)0;
        }
        stats.invalid = 0;
        return stats;
    }
};
static_assert(sizeof(Brief) <= BRIEF, "printer.py has no room for it");

// The bits of a row's threads among those of a warp; the first is at `shift`.
__device__ inline unsigned of_row(unsigned bits, int shift) {
    return S == 32 ? bits : (bits >> shift) & ((1u << (S % 32)) - 1);
}

// How many of a thread's places have the largest probability, and the lowest of their classes: that of place c is
// first + step * c.
struct Modes {
    int count, lowest;
};

__device__ __noinline__ Modes own_modes(const cell_t* v, order_t top, int first, int step) {
    Modes modes = {0, K};
    for (int c = 0; c < E; ++c) {
        if (KEY_OF(v[c]) != top) continue;
        modes.count += 1;
        modes.lowest = least(modes.lowest, first + step * c);
    }
    return modes;
}

// Look at a row whose places begin at `places`.
__device__ inline void look(const Args& a, int y, int s, const cell_t* places, Brief& brief) {
    const int below = threads_below(y);
    const bool high = s >= below;
    const cell_t* v = places + s * E;
    const cell_t p_true = places[S * E];
    real part = 0, errors = 0, squares = 0, rest = 0;
    order_t most = 0;
    // A pass outwards in: cumulative probabilities as if the thread were the outermost one.
#pragma unroll PLACES_AT_ONCE
    for (int c = 0; c < E; ++c) {
        const order_t key = KEY_OF(v[c]);
        const real x = (real)v[c];
        part += x;
        if (NEEDS_CDF) {
            errors += part;
            squares = fma_of(part, part, squares);
        }
        if (NEEDS_REST) rest = fma_of(x, x, rest);
        most = key > most ? key : most;
    }
    real outside, inner, total;
    sums_around(part, s, below, outside, inner, total);
    inner += (real)p_true;
    total += (real)p_true;
    if (SIGN_OF(most)) most = look_again(v);
    const bool values = group_all(p_true >= 0 && !SIGN_OF(most)) && total < INF;
#if NEEDS_CDF
    const real sums[4] = {
        rest,
        fma_of((real)E, outside, errors),
        fma_of(outside, fma_of((real)E, outside, 2 * errors), squares),
        0,
    };
    const real sum = group_sums(sums, s);
    if (s < 3) brief.sums[s] = sum;
#else
    if (NEEDS_REST) rest = group_sum(rest);
    if (NEEDS_REST && s == 0) brief.sums[0] = rest;
#endif
#if NEEDS_CDF_LOG
    // No side that holds the outcome has less probability than it. One question for the whole warp.
    const bool plain = __all_sync(EVERYONE, (real)p_true >= (real)PLAIN);
    // How many places of this thread are empty.
    int empty = (high ? (S - below) * E - (K - 1 - y) : below * E - y) - (high ? s - below : s) * E;
    empty = empty > 0 ? empty : 0;
    const Product sides = group_product(sides_of(v, inner, empty, plain), plain);
#endif
#if NEEDS_MODES
    const order_t own = p_true > 0 ? KEY_OF(p_true) : 0, top = group_most(own > most ? own : most);
    int modes = own == top, decision = own == top ? y : K;
    // The threads that have found the largest probability: mostly one, and all threads of the row look for where it is.
    const int shift = threadIdx.x % 32 - s;
    unsigned having = of_row(__ballot_sync(EVERYONE, most == top), shift);
    if (__any_sync(EVERYONE, __popc(having) > 2)) {
        // Where there are more, such as for equal probabilities, each looks at its own places.
        Modes own_ones = {0, K};
        const int first = high ? (S - s) * E + y : (s - below) * E + y;
        if (most == top) own_ones = own_modes(v, top, first, high ? -1 : 1);
        modes += group_count(own_ones.count);
        decision = least(decision, group_min(own_ones.lowest));
        having = 0;
    }
    for (; __any_sync(EVERYONE, having != 0); having &= having - 1) {
        const int thread = having ? __ffs((int)having) - 1 : 0;
#pragma unroll LOOKS_AT_ONCE
        for (int c = 0; c < E; c += S) {
            // Rows of zeros are invalid, whatever their signs.
            const bool mode = having && (c + S <= E || c + s < E) && KEY_OF(places[thread * E + c + s]) == top;
            const unsigned at = of_row(__ballot_sync(EVERYONE, mode), shift);
            // The lowest class is the first place below the outcome, and the last one above it.
            const int lowest = thread < below ? __ffs((int)at) - 1 : 31 - __clz((int)at);
            const int place = thread * E + c + lowest;
            modes += __popc(at);
            if (at) decision = least(decision, thread < below ? place - (below * E - y) : S * E + y - place);
        }
    }
#endif
    if (s != 0) return;
    brief.p_true = p_true;
    brief.values = values;
    brief.sums_to_one = abs_of(total - 1) <= (real)a.clear;
#if NEEDS_CDF_LOG
    brief.sides = sides;
#endif
#if NEEDS_MODES
    brief.decision = decision;
    brief.top = FROM_KEY(top);
    brief.modes = own == top ? modes : 0;
#endif
}

#endif
