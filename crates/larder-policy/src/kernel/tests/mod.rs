//! Worked examples and models of the kernels' rules.

mod examples_2_4;
mod examples_6;
mod model_2_4_16;
mod model_2_4_7;
mod model_6;
mod owner;
mod random;
