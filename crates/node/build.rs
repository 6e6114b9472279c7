//! Links the addon so that the loader never unmaps it: node closes an addon's library when the last
//! worker thread that loaded it ends, and threads of the engine may run longer.

fn main() {
    napi_build::setup();
}
