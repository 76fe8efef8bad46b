import RecordModel
import Service

/// `subscriptions/list`, `subscriptions/lookup` and `subscriptions/modify`.
struct SubscriptionRoutes {
    var service: RecordService
    var call: DatabaseCall

    private var subscriptions: Subscriptions { Subscriptions(service, call.request) }

    /// `GET subscriptions/list`: all of the caller's to this database, by name.
    func list() async throws(RequestFailure) -> Reply {
        let found = try await subscriptions.list()
        return reply { writer in for subscription in found { write(subscription, to: &writer) } }
    }

    /// `POST subscriptions/lookup`.
    func lookUp() async throws(RequestFailure) -> Reply {
        let ids = try call.form(SubscriptionsLookupRequest.self).ids
        let found = try await subscriptions.lookUp(ids)
        return reply { writer in
            for id in ids {
                if let subscription = found.first(where: { $0.id.utf8.elementsEqual(id.utf8) }) {
                    write(subscription, to: &writer)
                } else {
                    writer.subscriptionError(id, ServiceError(.notFound, "no subscription '\(id)'"))
                }
            }
        }
    }

    /// `POST subscriptions/modify`: each operation stands alone.
    func modify() async throws(RequestFailure) -> Reply {
        let operations = try call.form(SubscriptionsModifyRequest.self).operations
        let outcomes = try await subscriptions.modify(operations)
        return reply { writer in
            for (operation, outcome) in zip(operations, outcomes) {
                switch outcome {
                case .saved(let subscription): write(subscription, to: &writer)
                case .deleted: writer.deletedSubscription(operation.id)
                case .failed(let error):
                    call.note.itemFailed(error)
                    writer.subscriptionError(operation.id, error)
                }
            }
        }
    }

    private func write(_ subscription: Subscription, to writer: inout JSONWriter) {
        writer.subscription(subscription) { call.request.zoneID(named: $0) }
    }

    private func reply(_ members: (inout JSONWriter) -> Void) -> Reply {
        Reply { writer in
            writer.array("subscriptions", members)
        }
    }
}
