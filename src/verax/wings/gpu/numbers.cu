// One pass over rows of forecasts on a GPU: statistics, formulas, and sums, losses or gradients.
//
// `printer.py` writes settings above this text:
//   K classes, S threads per row (1, 2, ... 32), E consecutive classes per thread, WARPS per block;
//   REGISTERS: one thread per row, whose probabilities stay in registers; otherwise 32 / S rows at a time are
//   brought to shared memory, because neighbouring threads then read neighbouring memory;
//   WALKS: each thread walks over a row of probabilities (walks.cu); SPLIT: rows are split at the outcome (sides.cu);
//   NARROW: probabilities are kept in the type they came in; HELD: a thread keeps its logits of a tile in registers;
//   DENSE: rows follow each other without gaps; COLUMNS: columns are strided (column-major or sliced input); LOGITS, WEIGHTED, CLASSED (class weights), IGNORE;
//   TABLE: 0 no counts, 1 table in shared memory, 2 in global memory, 3 outcomes only;
//   NEEDS_*: which statistics the formulas read; real: the type that is computed in; value_t, outcome_t, weight_t;
//   PLAIN: what the outcome's probability must be for products of cumulative ones not to underflow, of E + 1 of them
//   where rows are in registers or split, else of four;
//   RULES, COUNTS, SUMS: how many losses, integer counts and sums there are; POOLED: a thread has one sum of its warp;
//   FIRST_SUM, SUM_STEP: where the sums of the rules stand.
// formulas(), slopes() and accumulate() follow this text, then the other files.
//
// Results depend on the rows and on the grid alone. The grid depends on the numbers of rows and classes, sums are
// added in a fixed order, and tables hold integers, so a call gives the same bits again.

typedef long long int64;
typedef unsigned long long uint64;

#define EVERYONE 0xffffffffu
#define ROWS (32 / S)
#if SPLIT
// Places of a row with what stands behind them: rows begin in different banks of shared memory.
#define PLACES (S * E + (ROWS > 1 ? 32 : 1))
#define TILE (ROWS * PLACES)
#else
#define TILE (32 * E)
#endif
#define THREADS (32 * WARPS)
#define CUMULATIVE (NEEDS_CDF || NEEDS_CDF_LOG)
// Rows in registers whose statistics are computed without branches first.
#define QUICK_ROWS (TALLY && REGISTERS && !LOGITS)
// As bits, because compilers do not divide by zero: it would be computed for each row.
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#define NOT_A_NUMBER __longlong_as_double(0x7ff8000000000000LL)
#define INF ((real)INFINITE)

struct Args {
    const value_t* p;
    int64 row_stride, column_stride;
    const outcome_t* y;
    int64 y_stride;
    const weight_t* w;
    int64 w_stride;
    int64 n, step, ignore;      // rows; how far 32 rows are from the next 32; the outcome of rows to leave out
    int64 parts;                // how many of the S parts of 32 rows are summed
    int64 probing;              // whether the only block tells what losses are summed relative to later
    double clear, scale;        // how far a row's sum may be from 1; what weights are multiplied by
    double limb;                // how many units of an integer of a cell make one of the integer above it
    double* shift;              // (RULES) losses are summed relative to these
    double* heaviest;           // the largest weight
    double* partial;            // (blocks, COUNTS + SUMS)
    double* totals;             // (COUNTS + SUMS), then the moments of the rules
    uint64* cells;              // (LIMBS, cells)
    int64 blocks;
    const real* class_weights;  // (K)
    real* out;                  // loss per row, or one loss
    const real* upstream;       // derivative of what is differentiated in `out`
    int64 upstream_stride;
    const double* divisor;      // the total weight, for means
    value_t* gradient;
    int64 mean;                 // whether `out` is a mean
    // What a metric has added up (`add_to_states`): totals, then their rounding errors; counts; or null.
    double* state_sums;
    int64* state_counts;
    double *state_squares, *state_cells, *state_squared_cells;
    uint64* ended;              // how many blocks have ended; zero between kernels
    double* result;             // (n_result) where the host reads what begins with `shift`
    int64 n_result;
    double* zeroed;             // (n_zeroed) what a probe sets to zero
    int64 n_zeroed;
    // Of a metric, by what is counted: the first row that must not be there, after `update` in the higher bits.
    uint64* state_first;
    int64 update;
};

// The shared memory of a block.
extern __shared__ double arena[];

// A number that compilers keep instead of computing it again for every use.
__device__ inline int64 kept(int64 x) {
#ifndef EMULATED
    asm volatile("" : "+l"(x));
#endif
    return x;
}

// ---- numbers --------------------------------------------------------------------------------

#if TALLY
// The logarithm by a table, at a third of the cost: x = 2^k z with z from 0.6875 to 1.375 is in one of 128 intervals.
// `inverse` is about 1 / z, so log(x) = k log(2) + log + log(1 + r) with r = z * inverse - 1 below 2^-7. Around
// one `inverse` is 1 and `log` is 0, so small logarithms keep their digits.
#define FIRST_INTERVAL 0x3fe60000
struct alignas(16) Interval {
    double inverse, log;
};
#define INTERVALS ((Interval*)((char*)arena + LOGS_AT))

__device__ inline void prepare_logs() {
    for (int t = threadIdx.x; t < 128; t += THREADS) {
        double middle = __longlong_as_double(((int64)(FIRST_INTERVAL + (t << 13) + (1 << 12))) << 32);
        double inverse = t == 79 || t == 80 ? 1.0 : (double)(float)(1 / middle);
        INTERVALS[t] = {inverse, -log(inverse)};
    }
}

__device__ __noinline__ double rare_log(double x) { return log(x); }

__constant__ double LOG_2 = 0.6931471805599453, SERIES[7] = {
    -0.5, 0.3333333333333333, -0.25, 0.2, -0.16666666666666666, 0.14285714285714285, -0.125};

// Operations that do not branch, so that those of a row overlap. Where a result may be wrong or infinite, `sure`
// becomes false: the row is then done again with care.
__device__ inline int high_of(double x) { return (int)(__double_as_longlong(x) >> 32); }

__device__ inline double quick_log(double x, bool& sure) {
    int64 bits = __double_as_longlong(x);
    int high = high_of(x), from = high - FIRST_INTERVAL;
    // Not zero, subnormal numbers, those that are none.
    sure &= (unsigned)(high - 0x00100000) < 0x7fe00000u;
    double z = __longlong_as_double(bits - ((int64)(from & 0xfff00000) << 32));
    Interval found = INTERVALS[(from >> 13) & 127];
    double r = fma(z, found.inverse, -1.0), sum = SERIES[6];
#pragma unroll
    for (int i = 5; i >= 0; --i) sum = fma(sum, r, SERIES[i]);
    double known = fma((double)(from >> 20), LOG_2, found.log);
    return known + fma(r * r, sum, r);
}

__device__ inline double log_of(double x) {
    bool sure = true;
    double log = quick_log(x, sure);
    return sure ? log : rare_log(x);
}

// Roots and quotients are those of compilers without their rare cases, to the last digit.
__device__ inline double quick_sqrt(double x, bool& sure) {
    sure &= (unsigned)(high_of(x) - 0x03500000) < 0x7ca00000u;
#ifdef EMULATED
    return sqrt(x);
#else
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    double error = fma(x, -(y * y), 1.0);
    y = fma(fma(error, 0.375, 0.5), y * error, y);
    double root = x * y, half = __longlong_as_double(__double_as_longlong(y) - (1LL << 52));
    return fma(fma(root, -root, x), half, root);
#endif
}

__device__ inline double quick_div(double a, double b, bool& sure) {
#ifdef EMULATED
    double q = a / b;
#else
    double y;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(b));
    double error = fma(-b, y, 1.0);
    y = fma(y, fma(error, error, error), y);
    y = fma(y, fma(-b, y, 1.0), y);
    double q = y * a;
    q = fma(y, fma(-b, q, a), q);
#endif
    // Exponents far from the ends, judged by the upper halves; nothing is said of NaN.
    float upper = fabsf(__int_as_float(high_of(a)));
    float result = fabsf(fmaf(0.0f, __int_as_float(high_of(b)), __int_as_float(high_of(q))));
    sure &= (upper >= 6.5827683646048100446e-37f && result > 1.469367938527859385e-39f) || (a == 0 && q == 0);
    return q;
}

__device__ inline double quick_exp(double x, bool& sure) {
    double y = exp(x);
    sure &= y < INFINITE;
    return y;
}
#else
__device__ inline double log_of(double x) { return log(x); }
#endif
__device__ inline double exp_of(double x) { return exp(x); }
__device__ inline float exp_of(float x) { return expf(x); }
__device__ inline float log_of(float x) { return logf(x); }
__device__ inline double sqrt_of(double x) { return sqrt(x); }
__device__ inline float sqrt_of(float x) { return sqrtf(x); }
__device__ inline double abs_of(double x) { return fabs(x); }
__device__ inline float abs_of(float x) { return fabsf(x); }
__device__ inline double fma_of(double a, double b, double c) { return fma(a, b, c); }
__device__ inline float fma_of(float a, float b, float c) { return fmaf(a, b, c); }
// As NumPy's: NaN wins.
__device__ inline real maximum(real a, real b) { return a > b || a != a ? a : b; }
__device__ inline real minimum(real a, real b) { return a < b || a != a ? a : b; }
// The same where the second is a number.
__device__ inline real larger(real a, real b) { return a < b ? b : a; }
__device__ inline real smaller(real a, real b) { return a > b ? b : a; }
__device__ inline real sign_of(real x) { return x > 0 ? (real)1 : x < 0 ? (real)-1 : x; }
// NaN loses if it comes first.
__device__ inline double greater(double a, double b) { return a > b ? a : b; }
__device__ inline float greater(float a, float b) { return fmaxf(a, b); }
__device__ inline int least(int a, int b) { return a < b ? a : b; }

#ifndef EMULATED
__device__ inline float half_to_float(unsigned short x) {
    float y;
    asm("{cvt.f32.f16 %0, %1;}" : "=f"(y) : "h"(x));
    return y;
}
// Of numbers that are not subnormal, to the last digit.
__device__ inline float inverse_of(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline unsigned short float_to_half(float x) {
    unsigned short y;
    asm("{cvt.rn.f16.f32 %0, %1;}" : "=h"(y) : "f"(x));
    return y;
}
#endif

__device__ inline double inverse_of(double x) { return 1 / x; }

#if VALUE == 2
typedef float narrow_t;
__device__ inline narrow_t read(value_t x) { return half_to_float(x); }
__device__ inline value_t write(real x) { return float_to_half((float)x); }
#elif VALUE == 3
typedef float narrow_t;
__device__ inline narrow_t read(value_t x) { return __uint_as_float((unsigned)x << 16); }
__device__ inline value_t write(real x) {
    unsigned bits = __float_as_uint((float)x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (value_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#else
typedef value_t narrow_t;
__device__ inline narrow_t read(value_t x) { return x; }
__device__ inline value_t write(real x) { return (value_t)x; }
#endif

// What a thread holds of a row: probabilities as they came (NARROW), because narrow numbers compare faster.
#if NARROW
typedef narrow_t cell_t;
#else
typedef real cell_t;
#endif

// Probabilities that are not negative are in the order of their bits, and those that are come last.
#if VALUE == 0
typedef uint64 order_t;
#define KEY_OF(x) ((order_t)__double_as_longlong(x))
#define FROM_KEY(key) __longlong_as_double((int64)(key))
#define SIGN_OF(key) ((int64)(key) < 0)
#else
typedef unsigned order_t;
#define KEY_OF(x) ((order_t)__float_as_int(x))
#define FROM_KEY(key) __int_as_float((int)(key))
#define SIGN_OF(key) ((int)(key) < 0)
#endif

// A number in the type that is computed in.
#if TALLY && NARROW && VALUE == 1 && !defined(EMULATED)
__device__ inline real widened(float x) {
    // Compilers would do this again for every use, to save registers, at the cost of four additions each.
    double y;
    asm volatile("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x));
    return y;
}
#else
__device__ inline real widened(cell_t x) { return (real)x; }
#endif

// A product of many factors up to about one, as m * 2^e, so that it does not underflow.
struct Product {
    real m;
    int e;
};
#define SMALL ((real)(sizeof(real) == 8 ? 3.054936363499605e-151 : 8.673617379884035e-19))  // 2^-500, 2^-60
#define LARGE ((real)(sizeof(real) == 8 ? 3.273390607896142e150 : 1.152921504606847e18))
#define DIGITS (sizeof(real) == 8 ? 500 : 60)
// Probabilities made of logits that are smaller are no longer used: 2^-900, 2^-100.
#define FAR ((real)(sizeof(real) == 8 ? 1.1830521861667747e-271 : 7.888609052210118e-31))

// Make room for some more factors.
__device__ inline void renew(Product& product) {
    bool small = product.m < SMALL;
    product.m *= small ? LARGE : (real)1;
    product.e -= small ? DIGITS : 0;
}

// Multiply by x; `plain` where the product of the next factors cannot underflow.
__device__ inline void times(Product& product, real x, bool plain) {
    if (!plain) {
        while (x < SMALL && x > 0) {
            x *= LARGE;
            product.e -= DIGITS;
        }
        renew(product);
    }
    product.m *= x;
}

__device__ inline real log_of(const Product& product) {
    real log = log_of(product.m);
    return product.e == 0 ? log : log + (real)product.e * (real)0.6931471805599453;
}

#if TALLY
// Multiply where compilers that know of a product compute it always, and then choose.
__device__ inline void multiply(double& factor, double x) {
#ifdef EMULATED
    factor *= x;
#else
    asm volatile("mul.rn.f64 %0, %0, %1;" : "+d"(factor) : "d"(x));
#endif
}

// Add where compilers would compute the sum always, and then choose.
__device__ inline void add(double& sum, double x) {
#ifdef EMULATED
    sum += x;
#else
    asm volatile("add.rn.f64 %0, %0, %1;" : "+d"(sum) : "d"(x));
#endif
}

// Move the exponent of a factor out of the way; `exponents` counts each from -1023.
__device__ inline void renew(double& factor, int& exponents) {
    int64 bits = __double_as_longlong(factor);
    exponents += (int)(bits >> 52);
    factor = __longlong_as_double((bits & 0x000fffffffffffffLL) | 0x3ff0000000000000LL);
}

// A product as a number, where that does not underflow: its logarithm then keeps its digits.
__device__ inline Product settled(Product product) {
    if (product.e < -900 || product.e > 900) return product;
    return {product.m * __longlong_as_double((int64)(product.e + 1023) << 52), 0};
}
#endif

// What a correct decision counts where several classes are as likely.
__constant__ double SHARES[9] = {0, 1, 1 / 2., 1 / 3., 1 / 4., 1 / 5., 1 / 6., 1 / 7., 1 / 8.};

// What formulas read of a row, and the derivatives of a loss in it.
struct Stats {
    real p_true, log_true, rest_sq, cdf_l2, cdf_l1, cdf_log, top, hit, answered, hit_lowest, invalid;
};
struct Partials {
    real log_true, rest_sq, cdf_l2, cdf_l1, cdf_log, top;
};

// ---- the threads of a warp ------------------------------------------------------------------

// The sum over a warp, known to all its threads.
__device__ inline double warp_sum(double x) {
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(EVERYONE, x, d);
    return x;
}

// Add to the q-th sum of a warp that pools its sums, one in each thread, which leaves registers free.
__device__ inline void pool(double* sums, int q, double x) {
    x = warp_sum(x);
    if (threadIdx.x % 32 == q) sums[0] += x;
}
