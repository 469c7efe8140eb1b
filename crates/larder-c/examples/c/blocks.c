/* A log in a file, through a block cache: the storage is two functions over pread and pwrite.
 *
 *   cc blocks.c $(pkg-config --cflags --libs larder) && ./a.out
 */
#define _POSIX_C_SOURCE 200809L

#include <larder.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The one file, number 1. */
struct disk {
  int descriptor;
  unsigned writes;
  bool full;
};

static int disk_read(void *user, uint64_t file, uint64_t offset, void *into, size_t bytes, size_t *done) {
  struct disk *disk = user;
  (void)file;
  ssize_t n = pread(disk->descriptor, into, bytes, (off_t)offset);
  if (n < 0) return errno;
  *done = (size_t)n;
  return 0;
}

static int disk_write(void *user, uint64_t file, uint64_t offset, const void *from, size_t bytes, size_t *done) {
  struct disk *disk = user;
  (void)file;
  if (disk->full) return ENOSPC;
  ssize_t n = pwrite(disk->descriptor, from, bytes, (off_t)offset);
  if (n < 0) return errno;
  disk->writes++;
  *done = (size_t)n;
  return 0;
}

static int disk_sync(void *user, uint64_t file) {
  struct disk *disk = user;
  (void)file;
  return fsync(disk->descriptor) == 0 ? 0 : errno;
}

static void disk_end(void *user) {
  struct disk *disk = user;
  close(disk->descriptor);
  puts("the disk is closed");
}

int main(void) {
  larder_error error;
  char path[] = "/tmp/larder-blocks-XXXXXX";
  struct disk disk = {mkstemp(path), 0, false};
  if (disk.descriptor < 0) return 1;
  unlink(path);

  larder_blocks_options options;
  larder_blocks_options_init(&options);
  options.bytes = 1 << 20;
  options.dirty_age_ms = 5000;
  options.read = disk_read;
  options.write = disk_write;
  options.sync = disk_sync;
  options.end = disk_end;
  options.user = &disk;
  larder_blocks *blocks = NULL;
  larder_blocks_handle *handle = NULL; /* one for each thread */
  larder_blocks_file *log = NULL;
  if (larder_blocks_new(&options, &blocks, &error) != LARDER_OK) goto failed;
  if (larder_blocks_start_helper(blocks, 1000, &error) != LARDER_OK) goto failed;
  if (larder_blocks_handle_new(blocks, &handle, &error) != LARDER_OK) goto failed;
  if (larder_blocks_file_open(blocks, 1, 0, 0, &log, &error) != LARDER_OK) goto failed;

  /* Appended, and written with few calls. */
  uint64_t end = 0;
  for (int i = 0; i < 1000; i++) {
    char line[32];
    int n = snprintf(line, sizeof line, "line %d\n", i);
    if (larder_blocks_handle_write(handle, log, end, line, (size_t)n, NULL, &error) != LARDER_OK) goto failed;
    end += (uint64_t)n;
  }
  if (larder_blocks_file_sync(log, &error) != LARDER_OK) goto failed;
  printf("%d bytes, %s\n", (int)larder_blocks_file_end(log), disk.writes < 10 ? "few writes" : "many writes");

  char text[9] = {0};
  if (larder_blocks_handle_read(handle, log, end - 9, text, 8, &error) != LARDER_OK) goto failed;
  printf("the last is %s\n", text);

  /* In place: a block stays where `data` points until it is unpinned. */
  larder_block block;
  if (larder_blocks_handle_pin_write(handle, log, 0, 0, 0, &block, &error) != LARDER_OK) goto failed;
  memcpy(block.data, "LINE", 4);
  larder_blocks_unpin(&block);
  if (larder_blocks_handle_pin(handle, log, 0, &block, &error) != LARDER_OK) goto failed;
  printf("%.6s of %zu bytes\n", (char *)block.data, block.bytes);
  larder_blocks_unpin(&block);
  printf("again: %s\n", larder_strerror(larder_blocks_unpin(&block)));

  disk.full = true;
  if (larder_blocks_file_sync(log, &error) == LARDER_STORAGE)
    printf("a full disk: %s\n", error.os_errno == ENOSPC ? error.message : "another error");
  disk.full = false;
  if (larder_blocks_file_sync(log, &error) != LARDER_OK) goto failed;

  if (larder_blocks_file_truncate(log, 7, &error) != LARDER_OK) goto failed;
  if (ftruncate(disk.descriptor, 7) != 0) return 1;
  larder_blocks_stats stats = {.size = sizeof stats};
  if (larder_blocks_stats_read(blocks, &stats, &error) != LARDER_OK) goto failed;
  printf("%d block in memory, rule %s\n", (int)stats.resident, stats.policy);

  larder_blocks_file_free(log);
  larder_blocks_handle_free(handle);
  larder_blocks_free(blocks);
  puts("done");
  return 0;

failed:
  fprintf(stderr, "%s\n", error.message);
  return 1;
}
