package main

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"
)

// informerFactory hands out informers that are told of changes by add, update and remove instead of by an API server.
// Their handlers run at once and in order, so that a decision after a change has seen it.
type informerFactory struct {
	informers.SharedInformerFactory // what is not overridden below is never called
	byType                          map[reflect.Type]*informer
}

func newInformerFactory() *informerFactory {
	return &informerFactory{byType: map[reflect.Type]*informer{}}
}

func (f *informerFactory) Apps() apps.Interface     { return apps.New(f, metav1.NamespaceAll, nil) }
func (f *informerFactory) Core() core.Interface     { return core.New(f, metav1.NamespaceAll, nil) }
func (f *informerFactory) Policy() policy.Interface { return policy.New(f, metav1.NamespaceAll, nil) }
func (f *informerFactory) Resource() resource.Interface {
	return resource.New(f, metav1.NamespaceAll, nil)
}
func (f *informerFactory) Scheduling() scheduling.Interface {
	return scheduling.New(f, metav1.NamespaceAll, nil)
}
func (f *informerFactory) Storage() storage.Interface {
	return storage.New(f, metav1.NamespaceAll, nil)
}

func (f *informerFactory) InformerFor(object runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.of(object)
}

func (f *informerFactory) of(object runtime.Object) *informer {
	kind := reflect.TypeOf(object)
	if f.byType[kind] == nil {
		f.byType[kind] = &informer{store: &orderedStore{Indexer: cache.NewIndexer(
			cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}}
	}
	return f.byType[kind]
}

func (f *informerFactory) add(object runtime.Object) error {
	informer := f.of(object)
	if err := informer.store.Add(object); err != nil {
		return err
	}
	for _, handler := range informer.handlers {
		handler.OnAdd(object, false)
	}
	return nil
}

func (f *informerFactory) update(object runtime.Object) error {
	informer := f.of(object)
	old, found, err := informer.store.Get(object)
	if err != nil {
		return err
	}
	if !found {
		return f.add(object)
	}
	if err := informer.store.Update(object); err != nil {
		return err
	}
	for _, handler := range informer.handlers {
		handler.OnUpdate(old, object)
	}
	return nil
}

func (f *informerFactory) remove(object runtime.Object) error {
	informer := f.of(object)
	old, found, err := informer.store.Get(object)
	if err != nil || !found {
		return err
	}
	if err := informer.store.Delete(object); err != nil {
		return err
	}
	for _, handler := range informer.handlers {
		handler.OnDelete(old)
	}
	return nil
}

// informer is what the scheduler asks for of a SharedIndexInformer; it is always synced and never runs.
type informer struct {
	cache.SharedIndexInformer
	store    *orderedStore
	handlers []cache.ResourceEventHandler
}

func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return registration{}, nil
}

func (i *informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (i *informer) AddIndexers(indexers cache.Indexers) error                       { return i.store.AddIndexers(indexers) }
func (i *informer) GetIndexer() cache.Indexer                                       { return i.store }
func (i *informer) GetStore() cache.Store                                           { return i.store }
func (i *informer) HasSynced() bool                                                 { return true }
func (i *informer) HasSyncedChecker() cache.DoneChecker                             { return done{} }
func (i *informer) IsStopped() bool                                                 { return false }

type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool                     { return true }
func (registration) HasSyncedChecker() cache.DoneChecker { return done{} }

// done has always been done.
type done struct{}

func (done) Name() string { return "synced" }

func (done) Done() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}

// orderedStore lists objects in the order in which they came. A real store lists them in random order, which matters for
// overlapping PodDisruptionBudgets only.
type orderedStore struct {
	cache.Indexer
	keys []string
}

func (s *orderedStore) Add(object any) error {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err == nil && !slices.Contains(s.keys, key) {
		s.keys = append(s.keys, key)
	}
	return s.Indexer.Add(object)
}

func (s *orderedStore) List() []any {
	var found []any
	for _, key := range s.keys {
		if object, exists, _ := s.GetByKey(key); exists {
			found = append(found, object)
		}
	}
	return found
}
