/* Interrupt or fail the writes of a process, for tests: loaded with LD_PRELOAD, it counts every call that changes a file
   below CRASH_FOLDER, whoever makes it (Python, SQLite, FAISS), and at number CRASH_AT does what CRASH_ACTION says:

     kill       SIGKILL just before the call
     torn       SIGKILL after half of the bytes are written; as `kill` where nothing is written
     a number   fail with that errno; with CRASH_STICKY=1 all later calls fail too, as on a full disk

   With CRASH_ONLY, the name of a call, only that one is counted. What was hit, or the number of calls at the end, is appended to CRASH_LOG. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;
static long at = -1;
static int action_errno, torn, sticky, ready;
static const char *folder, *log_path, *only;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

__attribute__((constructor)) static void start(void) {
    const char *action = getenv("CRASH_ACTION");
    folder = getenv("CRASH_FOLDER");
    log_path = getenv("CRASH_LOG");
    only = getenv("CRASH_ONLY");
    if (getenv("CRASH_AT")) at = atol(getenv("CRASH_AT"));
    sticky = getenv("CRASH_STICKY") && atoi(getenv("CRASH_STICKY"));
    torn = action && !strcmp(action, "torn");
    action_errno = action ? atoi(action) : 0;
    ready = folder && *folder;
}

static void report(const char *operation, const char *path) {
    char line[4400];
    int length = snprintf(line, sizeof line, "%s\t%s\t%ld\n", operation, path, (long)calls);
    int descriptor = log_path ? REAL(open)(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (descriptor < 0) return;
    if (REAL(write)(descriptor, line, length) < 0) abort();
    REAL(close)(descriptor);
}

__attribute__((destructor)) static void end(void) {
    if (ready) report("end", "-");
}

/* Say whether the call should fail; does not return where it kills. `*tear` is set where the caller is to write half. */
static int hit(const char *operation, const char *path, int *tear) {
    if (!ready || strncmp(path, folder, strlen(folder))) return 0;
    if (only && strcmp(operation, only)) return 0;
    long number = atomic_fetch_add(&calls, 1);
    if (at < 0 || number < at || (number > at && !sticky)) return 0;
    if (number == at) report(operation, path);
    if (action_errno) {
        errno = action_errno;
        return 1;
    }
    if (torn && tear) {
        *tear = 1;
        return 0;
    }
    kill(getpid(), SIGKILL);
    pause();
    return 1;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    pause();
}

static const char *path_of(int descriptor, char *buffer, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, buffer, size - 1);
    buffer[length < 0 ? 0 : length] = 0;
    return buffer;
}

static const char *path_at(int directory, const char *path, char *buffer, size_t size) {
    if (*path == '/' || directory == AT_FDCWD) return path;
    path_of(directory, buffer, size);
    strncat(buffer, "/", size - strlen(buffer) - 1);
    strncat(buffer, path, size - strlen(buffer) - 1);
    return buffer;
}

#define ON_FILE(type, name, parameters, arguments)                        \
    type name parameters {                                                \
        char buffer[4096];                                                \
        if (hit(#name, path_of(descriptor, buffer, sizeof buffer), NULL)) \
            return -1;                                                    \
        return REAL(name) arguments;                                      \
    }

ON_FILE(int, fsync, (int descriptor), (descriptor))
ON_FILE(int, fdatasync, (int descriptor), (descriptor))
ON_FILE(int, ftruncate, (int descriptor, off_t size), (descriptor, size))
ON_FILE(int, ftruncate64, (int descriptor, off64_t size), (descriptor, size))

#define WRITES(name, parameters, whole, half)                              \
    ssize_t name parameters {                                              \
        char buffer[4096];                                                 \
        int tear = 0;                                                      \
        if (hit(#name, path_of(descriptor, buffer, sizeof buffer), &tear)) \
            return -1;                                                     \
        if (tear) {                                                        \
            if (REAL(name) half < 0) abort();                              \
            die();                                                         \
        }                                                                  \
        return REAL(name) whole;                                           \
    }

WRITES(write, (int descriptor, const void *data, size_t size), (descriptor, data, size), (descriptor, data, size / 2))
WRITES(pwrite, (int descriptor, const void *data, size_t size, off_t offset), (descriptor, data, size, offset),
       (descriptor, data, size / 2, offset))
WRITES(pwrite64, (int descriptor, const void *data, size_t size, off64_t offset), (descriptor, data, size, offset),
       (descriptor, data, size / 2, offset))

size_t fwrite(const void *data, size_t size, size_t count, FILE *file) {
    char buffer[4096];
    int tear = 0;
    if (hit("fwrite", path_of(fileno(file), buffer, sizeof buffer), &tear)) return 0;
    if (tear) {
        REAL(fwrite)(data, size, count / 2, file);
        fflush(file);
        die();
    }
    return REAL(fwrite)(data, size, count, file);
}

#define OPENS(name)                                                                            \
    int name(const char *path, int flags, ...) {                                               \
        va_list rest;                                                                          \
        va_start(rest, flags);                                                                 \
        mode_t mode = va_arg(rest, mode_t);                                                    \
        va_end(rest);                                                                          \
        if (flags & (O_WRONLY | O_RDWR | O_CREAT) && hit(#name, path, NULL)) return -1;        \
        return REAL(name)(path, flags, mode);                                                  \
    }

OPENS(open)
OPENS(open64)

#define ON_PATH(name, parameters, directory, path, arguments)                       \
    int name parameters {                                                           \
        char buffer[4096];                                                          \
        if (hit(#name, path_at(directory, path, buffer, sizeof buffer), NULL)) return -1; \
        return REAL(name) arguments;                                                \
    }

ON_PATH(rename, (const char *old, const char *new), AT_FDCWD, new, (old, new))
ON_PATH(mkdir, (const char *path, mode_t mode), AT_FDCWD, path, (path, mode))
ON_PATH(rmdir, (const char *path), AT_FDCWD, path, (path))
ON_PATH(unlink, (const char *path), AT_FDCWD, path, (path))
ON_PATH(unlinkat, (int directory, const char *path, int flags), directory, path, (directory, path, flags))
