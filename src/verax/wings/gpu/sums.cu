// The sums of all rows: losses, counts, decisions.

// ---- sums -----------------------------------------------------------------------------------

// Add up the counts and sums of all threads of a block, in a fixed order.
__device__ inline void reduce_block(const Args& a, const double* counts, const double* sums, bool leads) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __syncthreads();
#pragma unroll
    for (int q = 0; q < (POOLED ? COUNTS : QUANTITIES); ++q) {
        double mine = q < COUNTS ? counts[q < COUNTS ? q : 0] : sums[q < COUNTS ? 0 : q - COUNTS];
        double x = warp_sum(leads ? mine : 0.0);
        if (lane == 0) arena[warp * QUANTITIES + q] = x;
    }
    if (POOLED && lane < SUMS) arena[warp * QUANTITIES + COUNTS + lane] = sums[0];
    __syncthreads();
    for (int q = threadIdx.x; q < QUANTITIES; q += THREADS) {
        double x = 0;
        for (int v = 0; v < WARPS; ++v) x += arena[v * QUANTITIES + q];
        a.partial[(int64)blockIdx.x * QUANTITIES + q] = x;
    }
}

#if TALLY

// The sums of all blocks, rounded once: a warp takes one quantity after the other.
__device__ inline void finish(const Args& a) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int q = warp; q < QUANTITIES; q += WARPS) {
        double high = 0, low = 0;
#pragma unroll 12
        for (int64 block = lane; block < a.blocks; block += 32)
            two_sum(high, low, __ldcg(a.partial + block * QUANTITIES + q));
        for (int d = 16; d > 0; d >>= 1) {
            double other = __shfl_down_sync(EVERYONE, high, d), rest = __shfl_down_sync(EVERYONE, low, d);
            two_sum(high, low, other);
            low += rest;
        }
        if (lane == 0) a.totals[q] = high + low;
    }
}

// Whether this block is the last one to end, which sees what all others have written.
__device__ inline bool ends_last(const Args& a) {
    bool* last = (bool*)arena;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *last = atomicAdd(a.ended, 1ULL) == (uint64)gridDim.x - 1;
        if (*last) *a.ended = 0;
        __threadfence();
    }
    __syncthreads();
    return *last;
}

// Add a weight, in units of a power of two above the heaviest, to a cell: three integers, which add up exactly.
__device__ inline void add_weight(uint64* cells, double x, double limb) {
    x *= limb;
    uint64 whole = (uint64)x;
    atomicAdd(cells, whole);
    x = (x - (double)whole) * limb;
    whole = (uint64)x;
    atomicAdd(cells + CELLS, whole);
    whole = (uint64)((x - (double)whole) * limb);
    atomicAdd(cells + 2 * CELLS, whole);
}

// The largest weight; numbers that are not negative are in the order of their bits.
extern "C" __global__ void heaviest(Args a) {
    double most = 0;
    for (int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += (int64)gridDim.x * blockDim.x) {
        double w = (double)a.w[i * a.w_stride];
        most = w > most ? w : most;
    }
    for (int d = 16; d > 0; d >>= 1) {
        double other = __shfl_down_sync(EVERYONE, most, d);
        most = other > most ? other : most;
    }
    if (threadIdx.x % 32 == 0) atomicMax((uint64*)a.heaviest, (uint64)__double_as_longlong(most));
}

// What is left of a row when its statistics are known.
struct Summary {
    Stats stats;
    int decision;
    bool values, sums;
    Product sides;
};

__device__ inline void count_invalid(
    const Args& a, int64 i, int* rare, const Summary& row, bool inside, bool weighs) {
    const bool wrong[4] = {!row.values, row.values && !row.sums, !inside, !weighs};
    for (int which = 0; which < 4; ++which) {
        if (!wrong[which]) continue;
        atomicAdd(rare + 2 + which, 1);
        if (a.state_first) atomicMin(a.state_first + 2 + which, (uint64)a.update << 32 | (uint64)i);
    }
}

// How far the rows of a warp are from its next ones; compilers would keep it in registers.
#define STRIDE ((int64)gridDim.x * WARPS * a.step)

// The summary of a thread's row: thread t of a warp gets row base + t.
#define PARTS (S <= 4 ? S : (int)a.parts)
#if REGISTERS
// A row on its way while a thread works on another.
struct Coming {
    value_t x[E];
    outcome_t y;
    __device__ inline void load(const Args& a, const value_t* p, const outcome_t* outcome) {
        y = *outcome;
        LOOP EACH_UP(c) x[c] = p[c * (COLUMNS ? a.column_stride : 1)];
    }
};

__device__ inline Summary summarize(const Args& a, const Coming& given, int64 i) {
    cell_t v[E];
    LOOP EACH_UP(c) v[c] = (cell_t)read(given.x[c]);
    Row row;
    row.sides = {1, 0};
    row.s = row.first = 0;
    row.i = i < a.n ? i : a.n - 1;
    int64 y = (int64)given.y;
    row.y = y >= 0 && y < K ? (int)y : 0;
    Stats stats = statistics(a, row, v);
    return {stats, row.decision, row.values, row.sums, row.sides};
}

#if QUICK_ROWS
__device__ inline Summary summarize_quickly(const Args& a, const Coming& given, int y, bool& sure) {
    cell_t v[E];
    LOOP EACH_UP(c) v[c] = (cell_t)read(given.x[c]);
    Summary row;
    row.stats = quick_statistics((real)a.clear, y, v, row.decision, sure);
    row.values = row.sums = true;
    return row;
}
#endif
#elif WALKS
__device__ inline Summary summarize(const Args& a, int64 base, int y, int lane, int warp) {
    cell_t* memory = (cell_t*)arena + warp * TILE;
    Row row;
    row.y = y;
    fetch(a, base, lane, memory);
    Stats stats = statistics(a, row, memory + lane * E);
#if NEEDS_CDF_LOG
    stats.cdf_log = -log_of(row.sides);
#endif
    return {stats, row.decision, row.values, row.sums, row.sides};
}
#elif SPLIT
// Several threads work on each row, one after the other until there are 32; formulas then take a thread each.
__device__ inline Summary summarize(
    const Args& a, int64 base, int y, int lane, int warp, Loads& loads) {
    cell_t* memory = (cell_t*)arena + warp * TILE;
    Brief* briefs = (Brief*)((char*)arena + SUMMARIES_AT) + warp * 32;
    briefs[lane].y = y;
    __syncwarp();
    for (int part = 0; part < PARTS; ++part) {
        const int64 tile = base + part * ROWS, following = part < PARTS - 1 ? tile + ROWS : base + STRIDE;
        Brief& brief = briefs[part * ROWS + lane / S];
        const int own = brief.y;
        fetch(a, tile, following, lane, own, memory, loads);
        look(a, own, lane % S, memory + lane / S * PLACES, brief);
    }
    __syncwarp();
    const Brief& mine = briefs[lane];
    return {mine.stats(), mine.decision, mine.values, mine.sums_to_one, mine.sides};
}
#else
// The same of rows in the order of their classes.
__device__ inline Summary summarize(
    const Args& a, int64 base, int y, int lane, int warp, Loads& loads) {
    Summary mine;
    cell_t* memory = (cell_t*)arena + warp * TILE;
    Summary* summaries = (Summary*)((char*)arena + SUMMARIES_AT) + warp * 32;
    for (int part = 0; part < PARTS; ++part) {
        int64 tile = base + part * ROWS, following = part < PARTS - 1 ? tile + ROWS : base + STRIDE;
        Row row = begin(a, tile, lane);
        fetch(a, tile, following, lane, memory, loads);
        Stats stats = statistics(a, row, memory + lane * E);
        if (S == 1) {
            mine = {stats, row.decision, row.values, row.sums, row.sides};
        } else if (row.s == 0) {
            summaries[part * ROWS + lane / S] = {stats, row.decision, row.values, row.sums, row.sides};
        }
    }
    if (S > 1) {
        __syncwarp();
        mine = summaries[lane];
    }
    return mine;
}
#endif

#if !POOLED
// What is found of a row that asks for care.
struct Careful {
    Summary row;
    real losses[RULES > 0 ? RULES : 1];
};

#if QUICK_ROWS
__device__ __noinline__ void with_care(const Coming& given, double clear, Careful& found) {
    Args a;
    a.clear = clear;
    a.n = 1;
    found.row = summarize(a, given, 0);
    formulas(found.row.stats, found.losses);
}
#else
__device__ __noinline__ void with_care(Careful& found) { formulas(found.row.stats, found.losses); }
#endif
#endif

// What losses are summed relative to: the mean loss of the rows of one block, where it is a number.
__device__ inline void settle_shifts(const Args& a) {
    double weight = WEIGHTED ? a.partial[COUNTS] : a.partial[0];
    for (int r = threadIdx.x; r < RULES; r += THREADS) {
        double mean = a.partial[COUNTS + FIRST_SUM + r * SUM_STEP] / weight;
        a.shift[r] = mean - mean == 0 ? mean : 0.0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) tally(Args a) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#if TABLE == 1
#if WEIGHTED
    uint64* table = (uint64*)((char*)arena + TABLE_AT);
#else
    unsigned* table = (unsigned*)((char*)arena + TABLE_AT);
#endif
    for (int t = threadIdx.x; t < CELLS * LIMBS; t += THREADS) table[t] = 0;
#elif TABLE
    uint64* table = a.cells;
#endif
    if (a.probing)
        for (int64 t = threadIdx.x; t < a.n_zeroed; t += THREADS) a.zeroed[t] = 0;
    prepare_logs();
    double* shift = (double*)((char*)arena + SHIFT_AT);
    for (int r = threadIdx.x; r < RULES; r += THREADS) shift[r] = a.probing ? 0.0 : a.shift[r];
    // What happens to few rows is counted in shared memory, which leaves registers free.
    int* rare = (int*)((char*)arena + RARE_AT);
    for (int q = threadIdx.x; q < COUNTS; q += THREADS) rare[q] = 0;
#if WALKS
    cell_t* memory = (cell_t*)arena + warp * TILE;
    for (int t = lane; t < TILE; t += 32) memory[t] = 0;
#endif
    __syncthreads();
    int rows = 0, positive = 0, hits = 0;
    double sums[SUMS > 0 && !POOLED ? SUMS : 1] = {};
    double heaviest = WEIGHTED && TABLE ? *a.heaviest * a.scale : 0.0;
    double weight_unit = heaviest > 0 && heaviest < INFINITE ? ldexp(1.0, -(ilogb(heaviest) + 1)) : 0.0;
    int64 base = ((int64)blockIdx.x * WARPS + warp) * a.step;
#if REGISTERS
    const int64 stride = STRIDE;
    // Warps take the same number of turns, in the last of which some threads have no row.
    const int64 own = base + lane;
    int turns = base < a.n ? (int)((a.n - base + stride - 1) / stride) : 0;
    int left = own < a.n ? (int)((a.n - own + stride - 1) / stride) : 0;
    const value_t* p = a.p + own * a.row_stride;
    const outcome_t* at = a.y + own * a.y_stride;
    const int64 next_p = kept(stride * (DENSE ? K : a.row_stride)), next_y = kept(stride * a.y_stride);
    if (!IGNORE) rows = left > 0 ? left : 0;
    Coming coming;
    if (left > 0) coming.load(a, p, at);
    for (int64 i = own; turns > 0; --turns, --left, i += stride) {
        const Coming given = coming;
        p += next_p;
        at += next_y;
        if (left > 1) coming.load(a, p, at);
        const int64 outcome = (int64)given.y;
        const bool there = left > 0;
#else
#if !WALKS
    Loads loads;
    start_loads(a, base, lane, loads);
#endif
    for (; base < a.n; base += STRIDE) {
        const int64 i = base + lane, outcome = (int64)a.y[(i < a.n ? i : a.n - 1) * a.y_stride];
        const bool there = i < a.n && lane < PARTS * ROWS;
#endif
        bool counted = there && !(IGNORE && outcome == a.ignore);
        const bool inside = outcome >= 0 && outcome < K;
        const int y = inside ? (int)outcome : 0;
#if WALKS
        Summary row = summarize(a, base, y, lane, warp);
#elif !REGISTERS
        Summary row = summarize(a, base, y, lane, warp, loads);
#elif !QUICK_ROWS
        Summary row = summarize(a, given, i);
#endif
        // Threads that pool their sums stay together, and rows in registers ask one question only.
        if (!POOLED && !QUICK_ROWS && !counted) continue;
        const double w = WEIGHTED && !counted ? 0.0 : weight_of(a, i, y);
        const bool weighs = !WEIGHTED || (w >= 0 && w < INFINITE);
        real losses[RULES > 0 ? RULES : 1];
        if (!REGISTERS || IGNORE) rows += counted;
#if !POOLED
        bool sure = counted && inside && weighs;
#if QUICK_ROWS
        Summary row = summarize_quickly(a, given, y, sure);
#else
        sure &= row.values && row.sums && (LOGITS ? row.stats.log_true > -INF : row.stats.p_true > 0);
        if (NEEDS_CDF_LOG) sure &= row.stats.cdf_log < INF;
#endif
        quick_formulas(row.stats, losses, sure);
        if (sure) {
            if (WEIGHTED) positive += w > 0;
            add_finite(losses, w, shift, sums);
        } else {
            if (!counted) continue;
            Careful found;
#if QUICK_ROWS
            // A copy, because what has an address is in memory.
            const Coming again = given;
            with_care(again, a.clear, found);
            row = found.row;
#else
            found.row = row;
            with_care(found);
#endif
            if (!row.values || !row.sums || !inside || !weighs) {
                count_invalid(a, i, rare, row, inside, weighs);
                continue;
            }
            if ((LOGITS ? row.stats.log_true == -INF : row.stats.p_true == 0) && w > 0) atomicAdd(rare + 1, 1);
            if (WEIGHTED) positive += w > 0;
            accumulate(found.losses, w, true, shift, rare, sums);
        }
#else
        if (counted && (!row.values || !row.sums || !inside || !weighs)) {
            count_invalid(a, i, rare, row, inside, weighs);
            counted = false;
        }
        if (counted && (LOGITS ? row.stats.log_true == -INF : row.stats.p_true == 0) && w > 0)
            atomicAdd(rare + 1, 1);
        formulas(row.stats, losses);
        accumulate(losses, w, counted, shift, rare, sums);
        if (!counted) continue;
#endif
#if TABLE
        bool hit = row.decision == y;
        if (TABLE == 3) {
            if (WEIGHTED) {
                sums[SUMS - 2] += hit ? w : 0.0;
                sums[SUMS - 1] += hit ? w * w : 0.0;
            } else {
                hits += hit;
            }
        }
        // A table in shared memory is thrown away where there is none to add it to.
        if (TABLE == 1 || a.cells) {
            int cell = TABLE == 3 ? y : y * K + row.decision;
            if (WEIGHTED) {
                double x = w * weight_unit;
                add_weight((uint64*)table + cell, x, a.limb);
                add_weight((uint64*)table + 3 * CELLS + cell, x * x, a.limb);
            } else {
                atomicAdd(table + cell, 1);
            }
        }
#endif
    }
    __syncthreads();
    double counts[COUNTS];
#pragma unroll
    for (int q = 0; q < COUNTS; ++q) {
        counts[q] = threadIdx.x == 0 ? (double)rare[q] : 0.0;
        if (q == 0) counts[q] = (double)rows;
        if (q == 6) counts[q] = (double)positive;
        if (TABLE == 3 && !WEIGHTED && q == COUNTS - 1) counts[q] = (double)hits;
    }
    reduce_block(a, counts, sums, true);
    __syncthreads();
    if (a.probing) {
        settle_shifts(a);
        return;
    }
#if TABLE == 1
    if (a.cells)
        for (int t = threadIdx.x; t < CELLS * LIMBS; t += THREADS)
            if (table[t]) atomicAdd(a.cells + t, (uint64)table[t]);
#endif
    if (!ends_last(a)) return;
    finish(a);
    __syncthreads();
    settle_moments(a);
    __syncthreads();
    // Where the host reads them.
    for (int64 t = threadIdx.x; t < a.n_result; t += THREADS) a.result[t] = __ldcg(a.shift + t);
}

#endif
