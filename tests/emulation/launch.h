// After the text of kernels: these by name, called from Python.
static void (*kernel)(Args);
static Args arguments;

// A fiber runs its thread of one block after the other.
static void fiber() {
    while (true) {
        kernel(arguments);
        finished[current] = 1;
        pause();
    }
}

static void resume() {
    if (_setjmp(scheduler)) return;
    Fiber& next = *fibers[current];
    if (next.begun) _longjmp(next.place, 1);
    next.begun = true;
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = next.stack;
    start.uc_stack.ss_size = sizeof(next.stack);
    start.uc_link = nullptr;
    makecontext(&start, fiber, 0);
    setcontext(&start);
}

static void run(void (*which)(Args), unsigned blocks, unsigned threads, const Args* args) {
    kernel = which;
    arguments = *args;
    gridDim.x = blocks;
    blockDim.x = threads;
    while (fibers.size() < threads) fibers.push_back(new Fiber);
    for (unsigned block = 0; block < blocks; ++block) {
        finished.assign(threads, 0);
        of_block = Barrier();
        for (auto& barrier : of_warp) barrier = Barrier();
        for (unsigned left = threads; left;) {
            for (current = 0; current < threads; ++current) {
                if (finished[current]) continue;
                threadIdx.x = current;
                blockIdx.x = block;
                resume();
                left -= finished[current];
            }
        }
    }
}
