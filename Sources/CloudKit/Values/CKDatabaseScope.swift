/// Which of a container's databases: `CKDatabase.Scope`.
public enum CKDatabaseScope: Int, Hashable, Sendable {
    /// All users' common data.
    case `public` = 1
    /// One user's own data.
    case `private` = 2
    /// What others share with the user.
    case shared = 3
}
