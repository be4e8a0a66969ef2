; program test
; %b0 weights f32 weight
; %b1 child i32 index
; %b2 h f32 state

define void @kernel(ptr noundef %args) #0 {
entry:
  %a7 = alloca <16 x float>
  %buffers = load ptr, ptr %args, align 8, !invariant.load !0
  %at0 = getelementptr inbounds ptr, ptr %buffers, i64 0
  %b0 = load ptr, ptr %at0, align 8, !invariant.load !0
  %at1 = getelementptr inbounds ptr, ptr %buffers, i64 1
  %b1 = load ptr, ptr %at1, align 8, !invariant.load !0
  %at2 = getelementptr inbounds ptr, ptr %buffers, i64 2
  %b2 = load ptr, ptr %at2, align 8, !invariant.load !0
  %at.barrier = getelementptr inbounds i8, ptr %args, i64 8
  %barrier = load ptr, ptr %at.barrier, align 8, !invariant.load !0
  %at.context = getelementptr inbounds i8, ptr %args, i64 16
  %context = load ptr, ptr %at.context, align 8, !invariant.load !0
  %at.worker = getelementptr inbounds i8, ptr %args, i64 24
  %worker = load i32, ptr %at.worker, align 4, !invariant.load !0
  %at.workers = getelementptr inbounds i8, ptr %args, i64 28
  %workers = load i32, ptr %at.workers, align 4, !invariant.load !0
  %v0 = load i32, ptr %b1, align 4, !alias.scope !7, !noalias !8, !invariant.load !0
  %v6 = icmp slt i32 0, %v0
  br i1 %v6, label %loop1, label %done3
loop1:
  %i4 = phi i32 [ 0, %entry ], [ %i5, %latch2 ]
  store <16 x float> splat (float 0x0000000000000000), ptr %a7, align 4
  %v13 = icmp slt i32 0, 64
  br i1 %v13, label %loop8, label %done10
loop8:
  %i11 = phi i32 [ 0, %loop1 ], [ %i12, %latch9 ]
  %v14 = getelementptr inbounds i32, ptr %b1, i32 %i4
  %v15 = load i32, ptr %v14, align 4, !alias.scope !7, !noalias !8, !invariant.load !0
  %v16 = mul nsw i32 %v15, 64
  %v17 = add nsw i32 %v16, %i11
  %v18 = getelementptr inbounds float, ptr %b2, i32 %v17
  %v19 = load float, ptr %v18, align 4, !alias.scope !9, !noalias !10
  %v20 = insertelement <16 x float> poison, float %v19, i64 0
  %v21 = shufflevector <16 x float> %v20, <16 x float> poison, <16 x i32> zeroinitializer
  %v22 = mul nsw i32 %i11, 16
  %v23 = getelementptr inbounds float, ptr %b0, i32 %v22
  %v24 = load <16 x float>, ptr %v23, align 4, !alias.scope !5, !noalias !6, !invariant.load !0
  %v25 = load <16 x float>, ptr %a7, align 4
  %v26 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v21, <16 x float> %v24, <16 x float> %v25)
  store <16 x float> %v26, ptr %a7, align 4
  br label %latch9
latch9:
  %i12 = add nuw nsw i32 %i11, 1
  %v27 = icmp slt i32 %i12, 64
  br i1 %v27, label %loop8, label %done10
done10:
  %v28 = load <16 x float>, ptr %a7, align 4
  %v29 = fcmp olt <16 x float> %v28, splat (float 0x0000000000000000)
  %v30 = select <16 x i1> %v29, <16 x float> splat (float 0x0000000000000000), <16 x float> %v28
  %v31 = mul nsw i32 %i4, 64
  %v32 = getelementptr inbounds float, ptr %b2, i32 %v31
  store <16 x float> %v30, ptr %v32, align 4, !alias.scope !9, !noalias !10
  %v35 = icmp sgt i32 %workers, 1
  br i1 %v35, label %wait33, label %done34
wait33:
  call void %barrier(ptr %context) nounwind
  br label %done34
done34:
  br label %latch2
latch2:
  %i5 = add nuw nsw i32 %i4, 1
  %v36 = icmp slt i32 %i5, %v0
  br i1 %v36, label %loop1, label %done3
done3:
  ret void
}

declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)

attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }
attributes #1 = { nounwind willreturn memory(none) }
attributes #2 = { noinline nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }

!0 = !{}
!1 = distinct !{!1}
!2 = distinct !{!2, !1}
!3 = distinct !{!3, !1}
!4 = distinct !{!4, !1}
!5 = !{!2}
!6 = !{!3, !4}
!7 = !{!3}
!8 = !{!2, !4}
!9 = !{!4}
!10 = !{!2, !3}
