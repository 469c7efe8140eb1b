//! Ghostscript: pages of curves and text drawn as pixels.

use super::super::process::Step;
use super::super::shop::tool;
use super::{Program, commands, nothing};

pub(super) const GHOSTSCRIPT: Program = Program {
    name: "ghostscript",
    about: "gs: pages of curves, clipped patterns and text, as an image and as PDF",
    tools: &["gs"],
    lacks: nothing,
    scale: 4,
    quick: true,
    run: |shop, malloc| {
        let pages = SCRIPT.replace("PAGES", &shop.scale.to_string());
        let file = shop.write("work.ps", &pages)?;
        let file = file.to_string_lossy();
        let common = ["-q", "-dBATCH", "-dNOPAUSE", "-dSAFER", "-r100"];
        let drawn = shop.path("work.ppm");
        let mut words = common.to_vec();
        words.extend(["-sDEVICE=ppmraw", "-sOutputFile=work.ppm", &file]);
        let draw = Step::new(tool("gs")?, &words).makes(drawn);
        // A PDF has the time and a random name in it.
        let mut words = common.to_vec();
        words.extend(["-sDEVICE=pdfwrite", "-sOutputFile=work.pdf", &file]);
        let write = Step::new(tool("gs")?, &words);
        commands(shop, malloc, &[draw, write])
    },
};

const SCRIPT: &str = r"%!PS
/state 17 def
/draw { /state state 1103 mul 12345 add 65521 mod def state } def
/Helvetica findfont 9 scalefont setfont
1 1 PAGES {
  /page exch def
  1 1 400 {
    /n exch def
    draw 255 mod 255 div draw 255 mod 255 div draw 255 mod 255 div setrgbcolor
    newpath draw 600 mod draw 790 mod moveto
    draw 600 mod draw 790 mod draw 600 mod draw 790 mod draw 600 mod draw 790 mod curveto
    n 5 mod 0 eq { closepath fill } { draw 4 mod setlinewidth stroke } ifelse
  } for
  0 setgray
  1 1 80 {
    /n exch def
    40 n 9 mul 30 add moveto
    (line ) show n 10 string cvs show ( of page ) show page 10 string cvs show ( and some more text on it) show
  } for
  gsave 300 400 150 0 360 arc clip
  0 10 600 { /x exch def newpath x 0 moveto x 200 add 790 lineto stroke } for
  grestore
  showpage
} for
";
