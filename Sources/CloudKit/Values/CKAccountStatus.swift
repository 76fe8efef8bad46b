/// Whether a user is signed in, as `CKContainer.accountStatus()` tells it.
public enum CKAccountStatus: Int, Hashable, Sendable {
    /// The service could not be asked.
    case couldNotDetermine = 0
    /// A user is signed in: the private database can be used.
    case available = 1
    /// The system's settings deny the account.
    case restricted = 2
    /// No user is signed in: the public database can be read, nothing else.
    case noAccount = 3
    /// A user is known whose session has to be renewed.
    case temporarilyUnavailable = 4
}
