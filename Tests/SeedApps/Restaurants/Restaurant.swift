import Foundation

/// A restaurant as the form of the app fills it in.
struct Restaurant {
    var name: String
    var type: String
    var location: String
    var phone: String
    var description: String
    var image: Data?
}
