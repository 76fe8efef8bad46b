/// Why certificates could not be made, read or written: which file, what was wrong, what to do. A retry without the
/// remedy does not help.
package struct CertificatesError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The path of the file or folder, or the argument, that the error is about.
    package var file: String
    /// What was wrong with it.
    package var problem: String
    /// What the operator can do.
    package var remedy: String

    package init(file: String, problem: String, remedy: String) {
        self.file = file
        self.problem = problem
        self.remedy = remedy
    }

    package var description: String { "\(file): \(problem). \(remedy)." }
}
