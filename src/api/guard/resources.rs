//! What a guard holds, by name.

use super::MutexGuard;

impl MutexGuard {
    /// The name of the resource.
    pub fn resource(&self) -> &str {
        self.client.resource(self.key().title())
    }

    /// The names of the resources, of which a set has several.
    pub(crate) fn resources(&self) -> impl ExactSizeIterator<Item = &str> {
        self.key().each().iter().map(|key| self.client.resource(key))
    }
}
