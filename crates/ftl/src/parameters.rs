//! What can be chosen of something, by name.

mod chosen;

pub(crate) use self::chosen::{Chosen, first_named};

/// A number or a choice, as text.
pub trait Parameter {
    /// Its value.
    fn text(&self) -> String;

    /// Gives it a value.
    ///
    /// # Errors
    /// What the value must be.
    fn set(&mut self, text: &str) -> Result<(), String>;
}

impl Parameter for u32 {
    fn text(&self) -> String {
        self.to_string()
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        *self = text.parse().map_err(|_| format!("the value must be a whole number, {} at the most", u32::MAX))?;
        Ok(())
    }
}

impl Parameter for bool {
    fn text(&self) -> String {
        self.to_string()
    }

    fn set(&mut self, text: &str) -> Result<(), String> {
        *self = text.parse().map_err(|_| "the value must be true or false".to_owned())?;
        Ok(())
    }
}

/// The parameters of something, by name.
pub type Parameters<'p> = Vec<(&'static str, &'p mut dyn Parameter)>;

/// Their names and values.
pub(crate) fn texts(parameters: Parameters<'_>) -> Vec<(&'static str, String)> {
    parameters.into_iter().map(|(key, parameter)| (key, parameter.text())).collect()
}
