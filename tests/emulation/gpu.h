// A GPU as far as the kernels need one: blocks one after the other, the threads of a block as fibers that switch
// where threads of a GPU wait for each other. Numbers are those of the host's compiler.
#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <ucontext.h>
#include <vector>

#define EMULATED 1
#define __CUDA_ARCH__ 900
#define __device__
#define __global__
#define __shared__
#define __constant__ static
#define __noinline__ __attribute__((noinline))
#define __restrict__
#define __launch_bounds__(...)

struct Index {
    unsigned x;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

alignas(16) static double shared_memory[32768];
#define arena shared_memory

// Jumps, unlike switches of contexts, make no system calls, which would take most of the time.
struct Fiber {
    jmp_buf place;
    bool begun = false;
    alignas(16) char stack[1 << 16];
};
static jmp_buf scheduler;
static std::vector<Fiber*> fibers;
static std::vector<char> finished;
static unsigned current;

static void pause() {
    if (!_setjmp(fibers[current]->place)) _longjmp(scheduler, 1);
}

struct Barrier {
    unsigned arrived = 0, round = 0;
    void wait(unsigned n) {
        unsigned mine = round;
        if (++arrived == n) {
            arrived = 0;
            ++round;
        } else {
            while (round == mine) pause();
        }
    }
};
static Barrier of_block, of_warp[32];
static char slots[32][32][8];

static void __syncthreads() { of_block.wait(blockDim.x); }
static void __syncwarp() { of_warp[threadIdx.x / 32].wait(32); }

template <typename T> T exchange(T x, unsigned source) {
    unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    std::memcpy(slots[warp][lane], &x, sizeof(T));
    __syncwarp();
    T y;
    std::memcpy(&y, slots[warp][source], sizeof(T));
    __syncwarp();
    return y;
}
template <typename T> T __shfl_xor_sync(unsigned, T x, int d) { return exchange(x, (threadIdx.x % 32) ^ d); }
template <typename T> T __shfl_down_sync(unsigned, T x, int d, int width = 32) {
    int lane = threadIdx.x % 32;
    return exchange(x, lane % width + d < width ? lane + d : lane);
}
template <typename T> T __shfl_up_sync(unsigned, T x, int d, int width = 32) {
    int lane = threadIdx.x % 32;
    return exchange(x, lane % width >= d ? lane - d : lane);
}
template <typename T> T __shfl_sync(unsigned, T x, int source, int width = 32) {
    int lane = threadIdx.x % 32;
    return exchange(x, lane - lane % width + source);
}
static int __ffs(int x) { return __builtin_ffs(x); }
static int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static bool __all_sync(unsigned mask, bool x) {
    int all = x;
    for (int d = 1; d < 32; d <<= 1) all &= __shfl_xor_sync(mask, all, d);
    return all;
}
static unsigned __ballot_sync(unsigned mask, bool x) {
    unsigned bits = x ? 1u << threadIdx.x % 32 : 0;
    for (int d = 1; d < 32; d <<= 1) bits |= __shfl_xor_sync(mask, bits, d);
    return bits;
}
static bool __any_sync(unsigned mask, bool x) { return !__all_sync(mask, !x); }
template <typename T, typename F> T reduced(T x, F combine) {
    for (int d = 1; d < 32; d <<= 1) x = combine(x, __shfl_xor_sync(0, x, d));
    return x;
}
static int __reduce_add_sync(unsigned, int x) { return reduced(x, [](int a, int b) { return a + b; }); }
static int __reduce_min_sync(unsigned, int x) { return reduced(x, [](int a, int b) { return a < b ? a : b; }); }
static unsigned __reduce_max_sync(unsigned, unsigned x) {
    return reduced(x, [](unsigned a, unsigned b) { return a > b ? a : b; });
}
template <typename T, typename U> T atomicAdd(T* at, U x) {
    T before = *at;
    *at += x;
    return before;
}
template <typename T> T __ldcg(const T* at) { return *at; }
static void __threadfence() {}
static void atomicMin(unsigned long long* at, unsigned long long x) { *at = x < *at ? x : *at; }
static void atomicMax(unsigned long long* at, unsigned long long x) { *at = x > *at ? x : *at; }

static long long __double_as_longlong(double x) {
    long long y;
    std::memcpy(&y, &x, 8);
    return y;
}
static double __longlong_as_double(long long x) {
    double y;
    std::memcpy(&y, &x, 8);
    return y;
}
static int __float_as_int(float x) {
    int y;
    std::memcpy(&y, &x, 4);
    return y;
}
static float __int_as_float(int x) {
    float y;
    std::memcpy(&y, &x, 4);
    return y;
}
static unsigned __float_as_uint(float x) {
    unsigned y;
    std::memcpy(&y, &x, 4);
    return y;
}
static float __uint_as_float(unsigned x) {
    float y;
    std::memcpy(&y, &x, 4);
    return y;
}
// GCC before 13 knows half precision in C++ on ARM under this name only.
#if defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
typedef __fp16 half_type;
#else
typedef _Float16 half_type;
#endif
static float half_to_float(unsigned short x) {
    half_type y;
    std::memcpy(&y, &x, 2);
    return (float)y;
}
static unsigned short float_to_half(float x) {
    half_type y = (half_type)x;
    unsigned short z;
    std::memcpy(&z, &y, 2);
    return z;
}
static float inverse_of(float x) { return 1 / x; }
using std::exp;
using std::fabs;
using std::fma;
using std::ilogb;
using std::ldexp;
using std::log;
using std::sqrt;
