// Rows of probabilities of more classes than fit registers: each thread walks over a row of its own in shared memory.
//
// A row has E places; those beyond the K classes hold zero. Forwards, a thread adds up the probability of the classes
// up to each threshold, backwards that of the classes beyond it. Below the outcome the first is the cumulative error
// and the second the outcome's side, above the outcome the other way round: both are sums of numbers that are not
// negative, so they keep their digits.

#if WALKS

// Values that are read at once; E is an odd number of these, so threads read from different banks.
#define WIDTH (16 / (int)sizeof(cell_t))
constexpr int STEPS = E / WIDTH;
struct alignas(16) Some {
    cell_t x[WIDTH];
};

// ---- rows to shared memory --------------------------------------------------------------------

#if VALUE < 2 && __CUDA_ARCH__ >= 800 && !defined(EMULATED)
// Without a detour through registers.
__device__ inline void copy_some(void* to, const void* from) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
}
__device__ inline void copy_one(cell_t* to, const value_t* from) {
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(sizeof(cell_t)));
}
__device__ inline void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
#else
__device__ inline void copy_some(void* to, const void* from) { *(Some*)to = *(const Some*)from; }
__device__ inline void copy_one(cell_t* to, const value_t* from) { *to = (cell_t)read(*from); }
__device__ inline void await_copies() {}
#endif

// Bring the tile that begins with row `base` to the warp's shared memory.
__device__ inline void fetch(const Args& a, int64 base, int lane, cell_t* memory) {
    // Everyone has read what was there.
    __syncwarp();
    const int64 stride = DENSE ? K : a.row_stride;
    const value_t* p = a.p + base * stride;
    const int left = a.n - base < ROWS ? (int)(a.n - base) : ROWS;
    const bool wide = VALUE < 2 && K % WIDTH == 0 && stride % WIDTH == 0 && (uint64)a.p % 16 == 0;
    if (wide) {
        const int units = K / WIDTH;
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (r < left)
#pragma unroll 8
                for (int u = 0; u < units; u += 32)
                    if (u + 32 <= units || lane < units - u)
                        copy_some(memory + r * E + (u + lane) * WIDTH, p + r * stride + (u + lane) * WIDTH);
    } else {
        for (int r = 0; r < left; ++r)
#pragma unroll 8
            for (int u = 0; u < K; u += 32)
                if (u + 32 <= K || lane < K - u) copy_one(memory + r * E + u + lane, p + r * stride + u + lane);
    }
    await_copies();
    __syncwarp();
}

// ---- what threads find ------------------------------------------------------------------------

// The largest of some probabilities.
__device__ inline order_t most_of(const Some& some) {
    order_t most = KEY_OF(some.x[0]);
#pragma unroll
    for (int i = 1; i < WIDTH; ++i) most = KEY_OF(some.x[i]) > most ? KEY_OF(some.x[i]) : most;
    return most;
}

// The largest probability of a thread, from those of two steps at a time: in which steps it is first, and whether it is
// in others again.
struct Top {
    order_t key, second;
    int at;
    __device__ inline void look(order_t most, int step) {
        bool more = most > key;
        order_t less = more ? key : most;
        second = less > second ? less : second;
        at = more ? step : at;
        key = more ? most : key;
    }
};

// The same of a thread that has found a sign: that of zero, or of an invalid row, which is not looked at further.
__device__ __noinline__ bool look_again(const cell_t* v, Top& top) {
    top = {0, 0, 0};
    bool valid = true;
    for (int c = 0; c < E; ++c) {
        valid &= v[c] >= 0;
        top.look(v[c] > 0 ? KEY_OF(v[c]) : 0, c / WIDTH);
    }
    return valid;
}

// Multiply the probabilities of the outcome's sides of all thresholds, however small they are.
__device__ __noinline__ Product careful_sides(const cell_t* v, int y) {
    Product product = {1, 0};
    real before = 0, after = 0;
    for (int c = 0; c < K - 1; ++c) {
        before += (real)v[c];
        if (c >= y) times(product, before, false);
    }
    for (int c = K - 1; c > 0; --c) {
        after += (real)v[c];
        if (c <= y) times(product, after, false);
    }
    return product;
}

// What a thread adds up.
struct Found {
    real part, rest, errors, squares;
    Product sides;
};

// A cumulative probability is an error if a < b, else one of the outcome's side.
__device__ inline void add_error_or_side(Found& found, real x, int a, int b) {
    if (a < b) {
        if (NEEDS_CDF) {
            found.errors += x;
            found.squares = fma_of(x, x, found.squares);
        }
    } else if (NEEDS_CDF_LOG) {
        multiply(found.sides.m, x);
    }
}

// The statistics of a row; all but `cdf_log`, which is -log(row.sides).
__device__ inline Stats statistics(const Args& a, Row& row, const cell_t* v) {
    Stats stats;
    const int y = row.y;
    const cell_t p_true = v[y];
    stats.p_true = (real)p_true;
    Found found = {0, 0, 0, 0, {1, 0}};
    Top top = {0, 0, 0};
    int exponents = 0;
    // The last class has no threshold behind it.
    auto forward = [&](int step, int thresholds) {
        const Some some = ((const Some*)v)[step];
        const int at = y - step * WIDTH;
#pragma unroll
        for (int i = 0; i < WIDTH; ++i) {
            const real x = (real)some.x[i];
            found.part += x;
            if (NEEDS_REST && i != at) found.rest = fma_of(x, x, found.rest);
            if (CUMULATIVE && i < thresholds) add_error_or_side(found, found.part, i, at);
        }
        if (NEEDS_CDF_LOG) renew(found.sides.m, exponents);
        return most_of(some);
    };
    // There is no threshold before the first class.
    auto backward = [&](int step, real& after, int last) {
        const Some some = ((const Some*)v)[step];
#pragma unroll
        for (int i = WIDTH - 1; i >= 0; --i) {
            after += (real)some.x[i];
            if (i >= last) add_error_or_side(found, after, y - step * WIDTH, i);
        }
        if (NEEDS_CDF_LOG) renew(found.sides.m, exponents);
    };
    constexpr int whole = (K - 1) / WIDTH;
#pragma unroll 1
    for (int step = 0; step < whole - 1; step += 2) {
        const order_t one = forward(step, WIDTH), other = forward(step + 1, WIDTH);
        top.look(one > other ? one : other, step);
    }
    if (whole % 2) top.look(forward(whole - 1, WIDTH), whole - 1);
    top.look(forward(whole, K - 1 - whole * WIDTH), whole);
#if CUMULATIVE
    real after = 0;
#pragma unroll 2
    for (int step = whole; step > 0; --step) backward(step, after, 0);
    backward(0, after, 1);
    found.sides.e = exponents - 1023 * (2 * whole + 2);
#endif
    const real total = found.part;
    bool valid = true;
    if (SIGN_OF(top.key)) valid = look_again(v, top);
    row.values = valid && total < INF;
    row.sums = abs_of(total - 1) <= (real)a.clear;
    if (NEEDS_REST) stats.rest_sq = found.rest;
#if NEEDS_CDF
    stats.cdf_l1 = found.errors;
    stats.cdf_l2 = found.squares;
#endif
#if NEEDS_CDF_LOG
    // No side that holds the outcome has less probability than it.
    const bool plain = stats.p_true >= (real)PLAIN;
    if (!plain) found.sides = careful_sides(v, y);
    row.sides = settled(found.sides);
#endif
#if NEEDS_MODES
    const order_t most = top.key;
    int modes = 0, decision = K;
    const int last = top.second == most ? K : least(K, (top.at + 2) * WIDTH);
    for (int c = last - 1; c >= top.at * WIDTH; --c) {
        // A zero may have a sign.
        const bool mode = KEY_OF(v[c]) == most || (most == 0 && v[c] == 0);
        modes += mode;
        decision = mode ? c : decision;
    }
    row.decision = decision;
    row.modes = modes;
    const bool hit = KEY_OF(p_true) == most;
    stats.top = (real)FROM_KEY(most);
    stats.hit = !hit ? (real)0 : modes == 1 ? (real)1 : 1 / (real)modes;
    stats.answered = stats.hit;
    stats.hit_lowest = row.decision == y ? (real)1 : (real)0;
#endif
    stats.invalid = 0;
    return stats;
}

#endif
