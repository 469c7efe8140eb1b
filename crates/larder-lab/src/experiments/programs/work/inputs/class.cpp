struct K@N@ { int a; std::string b; bool operator<(const K@N@& o) const { return a < o.a; } };
class C@N@ {
  std::map<K@N@, std::vector<std::unique_ptr<K@N@>>> m;
  std::unordered_map<std::string, std::function<int(int)>> f;
public:
  void add(int x, const std::string& s) { m[K@N@{x, s}].push_back(std::make_unique<K@N@>(K@N@{x + @N@, s})); f[s] = [x](int y) { return x * y + @N@; }; }
  int sum() const { int n = 0; for (const auto& [k, v] : m) { n += k.a; for (const auto& p : v) n += p->a; } return n; }
  std::vector<K@N@> sorted() const { std::vector<K@N@> r; for (const auto& [k, v] : m) r.push_back(k); std::sort(r.begin(), r.end(), [](const K@N@& x, const K@N@& y) { return y < x; }); return r; }
  std::string text() const { std::ostringstream o; for (const auto& k : sorted()) o << k.a << ' ' << k.b; return o.str(); }
};
int use@N@(int n) { C@N@ c; for (int i = 0; i < n; ++i) c.add(i % 7, std::to_string(i)); return c.sum() + (int) c.text().size(); }
