//! Runs a page in headless Chromium and reads what it became.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What a page became.
pub(crate) struct Visit {
    /// The document after its scripts ran.
    pub(crate) dom: String,
    /// Lines that the browser's console received.
    pub(crate) console: Vec<String>,
    /// What the probe wrote, where the page had one.
    pub(crate) probe: Value,
}

/// The browser, or nothing with one line that says why the test is skipped.
///
/// `LARDER_CHROMIUM` names it; `LARDER_REQUIRE_BROWSER=1` makes its absence a failure.
pub(crate) fn browser() -> Option<PathBuf> {
    let names = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ];
    let named = std::env::var_os("LARDER_CHROMIUM").map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = named.filter(|p| p.is_file()).or_else(|| {
        std::env::split_paths(&paths)
            .flat_map(|dir| names.map(|n| dir.join(n)))
            .find(|p| p.is_file())
    });
    if found.is_none() {
        let required = std::env::var_os("LARDER_REQUIRE_BROWSER").is_some_and(|v| v == "1");
        assert!(
            !required,
            "LARDER_REQUIRE_BROWSER=1, but no Chromium was found: install it or set LARDER_CHROMIUM"
        );
        eprintln!("skipped: no Chromium found (apt-get install chromium, or set LARDER_CHROMIUM)");
    }
    found
}

/// Puts a script at the end of a page that writes its result as JSON into the page.
///
/// The policy allows the page's own scripts only, so it goes; the untouched page has a test of its own.
pub(crate) fn with_probe(page: &str, script: &str) -> String {
    let from = page
        .find("<meta http-equiv=\"Content-Security-Policy\"")
        .unwrap();
    let to = from + page[from..].find('>').unwrap() + 1;
    let probe = format!(
        "<script>(function () {{
           var result;
           try {{ result = (function () {{ {script} }})(); }} catch (e) {{ result = {{ error: String(e && e.stack || e) }}; }}
           var pre = document.createElement('pre');
           pre.id = 'probe';
           pre.textContent = JSON.stringify(result).replace(/[<>&]/g, function (c) {{
             return '\\\\u00' + c.charCodeAt(0).toString(16); }});
           document.body.appendChild(pre);
         }})();</script></body>"
    );
    let without = format!("{}{}", &page[..from], &page[to..]);
    let at = without.rfind("</body>").unwrap();
    format!(
        "{}{probe}{}",
        &without[..at],
        &without[at + "</body>".len()..]
    )
}

/// Opens a page from a file, at a fragment and in a window of this many pixels.
pub(crate) fn visit(
    browser: &Path,
    page: &str,
    fragment: &str,
    size: (u32, u32),
    extra: &[&str],
) -> Visit {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--no-first-run",
            "--disable-extensions",
            "--enable-logging=stderr",
        ])
        .args(["--virtual-time-budget=4000", "--dump-dom"])
        .arg(format!("--window-size={},{}", size.0, size.1))
        .arg(format!(
            "--user-data-dir={}",
            dir.path().join("profile").display()
        ))
        .args(extra)
        .arg(format!("file://{}{fragment}", file.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut err = child.stderr.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        out.read_to_end(&mut text).map(|_| text)
    });
    let errors = std::thread::spawn(move || {
        let mut text = Vec::new();
        err.read_to_end(&mut text).map(|_| text)
    });
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(120) {
            let _ = child.kill();
            panic!("the browser did not end within two minutes");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let dom = String::from_utf8(reader.join().unwrap().unwrap()).unwrap();
    let log = String::from_utf8_lossy(&errors.join().unwrap().unwrap()).into_owned();
    let console = log
        .lines()
        .filter(|l| l.contains(":CONSOLE"))
        .map(str::to_owned)
        .collect();
    let probe = dom
        .split("<pre id=\"probe\">")
        .nth(1)
        .and_then(|rest| rest.split("</pre>").next())
        .map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
    assert!(
        probe["error"].is_null(),
        "the probe failed: {}",
        probe["error"]
    );
    Visit {
        dom,
        console,
        probe,
    }
}
