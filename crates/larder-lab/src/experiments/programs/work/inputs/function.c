struct s@N@ { int a[@SIZE@]; double d; struct s@N@ *next; };
static const int t@N@[] = {@TABLE@};
int f@N@(struct s@N@ *s, int n, char *out) {
  int sum = 0;
  for (struct s@N@ *p = s; p; p = p->next) {
    for (int k = 0; k < n; ++k) sum += p->a[k % @SIZE@] * t@N@[(k + sum) & 31];
    switch (sum & 15) {
@CASES@    default: sum = -sum; }
  }
  sprintf(out, "%d", sum);
  return (int) strlen(out) + sum;
}
