package import RecordModel

// A webhook subscribes as a user does, under a name that no user has. What it hears of private databases is of every
// user's.
extension DatabaseKey {
    private static let webhookPrefix = "_webhook/"

    /// The private database that stands for a webhook, as one stands for each user.
    /// - Parameter id: the webhook's.
    package static func webhook(_ id: String, container: String, environment: Environment) -> DatabaseKey {
        DatabaseKey(container: container, environment: environment, scope: .private, owner: webhookPrefix + id)
    }

    /// Whether it stands for a webhook.
    package var isOfWebhook: Bool { owner.hasPrefix(Self.webhookPrefix) }

    /// What stands for the private databases of all users.
    var ofEveryOwner: DatabaseKey {
        var all = self
        all.owner = ""
        return all
    }
}

/// Those who watch one database.
struct WatchersOfDatabase {
    var own: DatabaseWatchers
    /// Those who watch the databases of all users; from `FeatureLevel.webhooks` on.
    var ofEveryOwner: DatabaseWatchers?

    var isEmpty: Bool { own.isEmpty && ofEveryOwner?.isEmpty ?? true }

    /// Of zones and of the whole database, by row.
    var zones: [WatcherEntry] {
        guard let others = ofEveryOwner?.zones, !others.isEmpty else { return own.zones }
        return (own.zones + others).sorted { $0.id < $1.id }
    }
}
