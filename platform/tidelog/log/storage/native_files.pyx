# cython: language_level=3, boundscheck=False, wraparound=False
"""Files of a local disk, created and synced in native code: one call, without the interpreter, for many system calls.

`tidelog.log.storage.local_drafts` and `local_durability` say what is done and why, and do it in Python where this is
not built, or answers with an error's number. Linux only: elsewhere every answer is ENOSYS.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport free, malloc


cdef extern from *:
    """
    #ifndef TIDELOG_SOURCE
    #define TIDELOG_SOURCE ""
    #endif
    #ifndef _GNU_SOURCE
    #define _GNU_SOURCE
    #endif
    #include <errno.h>
    #include <fcntl.h>
    #include <stdio.h>
    #include <sys/stat.h>
    #include <unistd.h>

    #if defined(__linux__) && defined(O_TMPFILE) && defined(AT_SYMLINK_FOLLOW)
    static int tidelog_written(int fd, const char *data, size_t size) {
        while (size) {
            ssize_t count = write(fd, data, size);
            if (count < 0) {
                if (errno == EINTR) continue;
                return errno;
            }
            data += count;
            size -= (size_t)count;
        }
        return 0;
    }

    /* A descriptor of an unnamed file in a folder of this device with this content, or an error's number below 0. */
    static int tidelog_begun(const char *folder, unsigned long long device, const char *data, size_t size) {
        struct stat status;
        int error = 0, fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
        if (fd < 0) return -errno;
        if (fstat(fd, &status)) error = errno;
        else if ((unsigned long long)status.st_dev != device) error = EXDEV;
        else error = tidelog_written(fd, data, size);
        if (!error) return fd;
        close(fd);
        return -error;
    }

    static int tidelog_named(int fd, const char *location) {
        char of_fd[32];
        snprintf(of_fd, sizeof of_fd, "/proc/self/fd/%d", fd);
        return linkat(AT_FDCWD, of_fd, AT_FDCWD, location, AT_SYMLINK_FOLLOW) ? errno : 0;
    }

    /* Nothing of a file or a folder: 0. What is synced: 1. An error's number below 0. */
    static int tidelog_synced(const char *location, int is_folder) {
        struct stat status;
        int done = 1, fd = open(location, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (is_folder ? O_DIRECTORY : 0));
        if (fd < 0) return errno == ENOENT ? 0 : -errno;
        if (!is_folder && fstat(fd, &status)) done = -errno;
        else if (!is_folder && !S_ISREG(status.st_mode)) done = 0;
        else if (fsync(fd)) done = -errno;
        close(fd);
        return done;
    }

    static int tidelog_taken(const char *location) { return access(location, F_OK) == 0; }
    static int tidelog_fsync(int fd) { return fsync(fd) ? errno : 0; }
    static void tidelog_close(int fd) { close(fd); }
    #else
    static int tidelog_begun(const char *folder, unsigned long long device, const char *data, size_t size) {
        return -ENOSYS;
    }
    static int tidelog_named(int fd, const char *location) { return ENOSYS; }
    static int tidelog_synced(const char *location, int is_folder) { return -ENOSYS; }
    static int tidelog_taken(const char *location) { return 0; }
    static int tidelog_fsync(int fd) { return ENOSYS; }
    static void tidelog_close(int fd) {}
    #endif
    """
    const char *TIDELOG_SOURCE
    int tidelog_begun(const char *folder, unsigned long long device, const char *data, size_t size) nogil
    int tidelog_named(int fd, const char *location) nogil
    int tidelog_synced(const char *location, int is_folder) nogil
    int tidelog_taken(const char *location) nogil
    int tidelog_fsync(int fd) nogil
    void tidelog_close(int fd) nogil


# The digest of what this was built from.
SOURCE = TIDELOG_SOURCE.decode()


def begin(bytes folder, unsigned long long device, data):
    """See the .pyi."""
    cdef Py_buffer content
    cdef const char *where = folder
    cdef int fd
    PyObject_GetBuffer(data, &content, PyBUF_SIMPLE)
    try:
        with nogil:
            fd = tidelog_begun(where, device, <const char *>content.buf, content.len)
    finally:
        PyBuffer_Release(&content)
    return fd


def create(bytes folder, unsigned long long device, bytes location, data):
    """See the .pyi."""
    cdef Py_buffer content
    cdef const char *where = folder
    cdef const char *name = location
    cdef int fd, error
    PyObject_GetBuffer(data, &content, PyBUF_SIMPLE)
    try:
        with nogil:
            fd = tidelog_begun(where, device, <const char *>content.buf, content.len)
            if fd < 0:
                error = -fd
            else:
                error = tidelog_named(fd, name)
                tidelog_close(fd)
    finally:
        PyBuffer_Release(&content)
    return error


def finish(int fd, bytes location, bytes folder):
    """See the .pyi."""
    cdef const char *name = location
    cdef const char *where = folder
    cdef int stage = 0, error = 0
    with nogil:
        if tidelog_taken(name):
            stage = 1
        if not stage:
            error = tidelog_fsync(fd)
            if error:
                stage = 2
        if not stage:
            error = tidelog_named(fd, name)
            if error:
                stage = 3
        if not stage:
            error = tidelog_synced(where, 1)
            if error <= 0:
                stage, error = 4, -error
            else:
                error = 0
    return stage, error


def sync(list locations, int files):
    """See the .pyi."""
    cdef Py_ssize_t count = len(locations), at
    cdef const char **names
    cdef int *done
    cdef bytes location
    names = <const char **>malloc(max(count, 1) * sizeof(char *))
    done = <int *>malloc(max(count, 1) * sizeof(int))
    try:
        if names == NULL or done == NULL:
            raise MemoryError
        for at in range(count):
            location = locations[at]
            names[at] = location  # which the list keeps: it is the caller's, and this call's alone
        with nogil:
            for at in range(count):
                done[at] = tidelog_synced(names[at], at >= files)
        return [done[at] for at in range(count)]
    finally:
        free(names)
        free(done)
