/* Loaded before the C library: after some number of calls that change files under a folder, one fails or the
 * process is killed. Python sets it through `attack_arm`; nothing happens before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT, FULL, DENIED, BROKEN, SHORT, KILL_BEFORE, KILL_AFTER };

static char folder[4096];
static int at = -1, kind, seen, lasting;

void attack_arm(const char *where, int number, int fault, int stays) {
    strncpy(folder, where, sizeof folder - 1);
    at = number, kind = fault, seen = 0, lasting = stays;
}

int attack_seen(void) { return seen; }

static int inside(const char *path) { return folder[0] && path && !strncmp(path, folder, strlen(folder)); }

static int named(int directory, const char *path) {
    char here[4096], link[64];
    ssize_t n;
    if (!folder[0] || !path) return 0;
    if (path[0] == '/') return inside(path);
    if (directory == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    n = syscall(SYS_readlinkat, AT_FDCWD, link, here, sizeof here - 1);
    if (n < 0) return 0;
    here[n] = 0;
    return inside(here);
}

static int opened(int number) {
    char link[64], path[4096];
    ssize_t n;
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return inside(path);
}

/* The fault of this call: -1 if it is to fail, 1 if the process is to be killed after it, 2 if it is to be short. */
static int strikes(int concerned) {
    int now;
    if (!concerned) return 0;
    now = seen++;
    if (kind == COUNT || !(now == at || (lasting && now > at))) return 0;
    if (kind == KILL_BEFORE) raise(SIGKILL);
    if (kind == KILL_AFTER) return 1;
    if (kind == SHORT && now == at) return 2;
    errno = kind == DENIED ? EACCES : kind == BROKEN ? EIO : ENOSPC;
    return -1;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define DONE(result) do { __typeof__(result) made = (result); if (struck == 1) raise(SIGKILL); return made; } while (0)

#define WRITES(type, name, parameters, arguments, number)                     \
    type name parameters {                                                    \
        REAL(name);                                                           \
        int struck = strikes(opened(number));                                 \
        if (struck < 0) return -1;                                            \
        DONE(real arguments);                                                 \
    }

ssize_t write(int fd, const void *data, size_t n) {
    REAL(write);
    int struck = strikes(opened(fd));
    if (struck < 0) return -1;
    DONE(real(fd, data, struck == 2 && n > 1 ? n / 2 : n));
}

WRITES(ssize_t, pwrite, (int fd, const void *d, size_t n, off_t o), (fd, d, n, o), fd)
WRITES(ssize_t, pwrite64, (int fd, const void *d, size_t n, off64_t o), (fd, d, n, o), fd)
WRITES(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), fd)
WRITES(int, ftruncate, (int fd, off_t n), (fd, n), fd)
WRITES(int, ftruncate64, (int fd, off64_t n), (fd, n), fd)
WRITES(int, fsync, (int fd), (fd), fd)
WRITES(int, fchmod, (int fd, mode_t m), (fd, m), fd)

#define NAMES(name, parameters, arguments, concerned)                         \
    int name parameters {                                                     \
        REAL(name);                                                           \
        int struck = strikes(concerned);                                      \
        if (struck < 0) return -1;                                            \
        DONE(real arguments);                                                 \
    }

NAMES(rename, (const char *a, const char *b), (a, b), named(AT_FDCWD, b))
NAMES(renameat, (int x, const char *a, int y, const char *b), (x, a, y, b), named(y, b))
NAMES(link, (const char *a, const char *b), (a, b), named(AT_FDCWD, b))
NAMES(linkat, (int x, const char *a, int y, const char *b, int f), (x, a, y, b, f), named(y, b))
NAMES(mkdir, (const char *a, mode_t m), (a, m), named(AT_FDCWD, a))
NAMES(mkdirat, (int x, const char *a, mode_t m), (x, a, m), named(x, a))
NAMES(chmod, (const char *a, mode_t m), (a, m), named(AT_FDCWD, a))

#define OPENS(name, ...)                                                      \
    va_list more;                                                             \
    mode_t mode = 0;                                                          \
    int struck;                                                               \
    REAL(name);                                                               \
    if (flags & (O_CREAT | O_TMPFILE)) {                                      \
        va_start(more, flags);                                                \
        mode = va_arg(more, mode_t);                                          \
        va_end(more);                                                         \
    }                                                                         \
    struck = strikes((flags & (O_WRONLY | O_RDWR | O_CREAT)) && CONCERNED);   \
    if (struck < 0) return -1;                                                \
    DONE(real(__VA_ARGS__, mode));

#define CONCERNED named(AT_FDCWD, path)
int open(const char *path, int flags, ...) { OPENS(open, path, flags) }
int open64(const char *path, int flags, ...) { OPENS(open64, path, flags) }
#undef CONCERNED
#define CONCERNED named(directory, path)
int openat(int directory, const char *path, int flags, ...) { OPENS(openat, directory, path, flags) }
int openat64(int directory, const char *path, int flags, ...) { OPENS(openat64, directory, path, flags) }
