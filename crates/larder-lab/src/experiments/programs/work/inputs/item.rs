
/// Number @N@.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Item@N@<T> {
    pub name: String,
    pub values: Vec<T>,
    pub by: BTreeMap<T, Vec<String>>,
}

impl<T: Clone + Ord + std::fmt::Debug> Item@N@<T> {
    pub fn new(values: &[T]) -> Self {
        let mut by: BTreeMap<T, Vec<String>> = BTreeMap::new();
        for (i, value) in values.iter().enumerate() {
            by.entry(value.clone()).or_default().push(format!("{value:?} at {i} of @N@"));
        }
        Self { name: "@N@".to_owned(), values: values.to_vec(), by }
    }

    pub fn longest(&self) -> Option<&str> {
        let all = self.by.values().flatten().map(String::as_str);
        all.max_by_key(|text| text.len())
    }
}

pub fn use@N@(numbers: &[u64], words: &[String]) -> usize {
    let (mut numbers, words) = (Item@N@::new(numbers), Item@N@::new(words));
    numbers.values.sort_unstable_by(|a, b| b.cmp(a));
    let of: HashMap<_, usize> = words.by.iter().map(|(k, v)| (k.clone(), v.len())).collect();
    let sum: u64 = numbers.values.iter().filter(|n| **n % @ODD@ == 0).sum();
    of.values().sum::<usize>() + sum as usize + numbers.longest().map_or(@N@, str::len)
}
