/* What threads hold on their stacks, in registers and in their variables is no leak; what an ended one held is.
 * options: on,leaks */
#include "misuse.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_int ready;
__thread char *of_thread;

OUT_OF_LINE void hold(void) {
  char *volatile on_stack = get(10);
  char *in_register = get(20);
  of_thread = get(30);
  atomic_fetch_add(&ready, 1);
  for (;;) {
    __asm__ volatile("pause" : "+r"(in_register) : : "memory");
    if (on_stack == NULL) break;
  }
}

static void *holds(void *arg) {
  hold();
  return arg;
}

OUT_OF_LINE void *main_of_thread(void *arg) {
  char *volatile mine = get(77);
  mine[0] = 1;
  return arg;
}

int main(void) {
  pthread_t id;
  for (int i = 0; i < 3; i++) pthread_create(&id, NULL, holds, NULL);
  while (atomic_load(&ready) < 3) usleep(1000);
  pthread_create(&id, NULL, main_of_thread, NULL);
  pthread_join(id, NULL);
  return 0;
}

/* prints:
larder: leak: 77 bytes in 1 block, by malloc:
    get
    main_of_thread
larder: leaks: 77 bytes in 1 block from 1 place
*/
